"""Which credentials a server asks for, and the settings that do not go together."""

import hmac
from dataclasses import dataclass

from metaforge.access.addresses import host_of, is_loopback
from metaforge.core.errors import AuthDenied
from metaforge.settings import BadSetting, Settings

MODES = ("off", "api_key", "oauth", "api_key+oauth")
_SHOWN = {"off": "open"}


def auth_mode(settings: Settings) -> str:
    """Return off, api_key, oauth or api_key+oauth.

    Raises:
        BadSetting: a mode that does not exist, or one whose key or issuer is missing.
    """
    asked = settings.auth_mode.strip().lower()
    mode = asked or "+".join(_configured(settings)) or "off"
    mode = "api_key+oauth" if mode == "oauth+api_key" else mode
    if mode not in MODES:
        raise BadSetting(f"METAFORGE_AUTH_MODE={settings.auth_mode!r} is refused: use {', '.join(MODES)}")
    if "api_key" in mode and not settings.api_key:
        raise BadSetting(f"METAFORGE_AUTH_MODE={mode} needs a key: set METAFORGE_MCP_API_KEY")
    if "oauth" in mode and not settings.oauth_issuer:
        raise BadSetting(f"METAFORGE_AUTH_MODE={mode} needs an issuer: set METAFORGE_OAUTH_ISSUER to its URL")
    return mode


def _configured(settings: Settings) -> list[str]:
    return [name for name, value in (("api_key", settings.api_key), ("oauth", settings.oauth_issuer)) if value]


def auth_shown(settings: Settings, *, over_stdio: bool) -> str:
    """Return what health reports: open, api_key, oauth or api_key+oauth. Tokens are for HTTP: stdio knows no OAuth."""
    mode = ("api_key" if settings.api_key else "off") if over_stdio else auth_mode(settings)
    return _SHOWN.get(mode, mode)


def check_stdio_key(settings: Settings) -> None:
    """Hold a stdio client to the key, where one is set.

    Raises:
        AuthDenied: METAFORGE_MCP_CLIENT_KEY is not METAFORGE_MCP_API_KEY.
    """
    if settings.api_key and not same(settings.client_key, settings.api_key):
        what = "does not match" if settings.client_key else "is not set, but"
        raise AuthDenied(
            f"auth_error: METAFORGE_MCP_CLIENT_KEY {what} METAFORGE_MCP_API_KEY: "
            "unset both for an open local server, or set both to the same value",
            error_type="auth_error",
        )


def same(left: str, right: str) -> bool:
    """Compare secrets in a time that tells nothing of where they differ."""
    return hmac.compare_digest(left.encode("utf-8", "surrogateescape"), right.encode("utf-8", "surrogateescape"))


@dataclass(frozen=True)
class OAuthConfig:
    """Which tokens are good here."""

    issuer: str
    audiences: tuple[str, ...]
    jwks_url: str = ""
    """Where the issuer's keys are; empty: as its own metadata says."""
    scopes: tuple[str, ...] = ()
    """What every token must carry."""
    approve_scope: str = ""
    """What a token must carry to decide approvals over the web; empty: nothing more."""

    @classmethod
    def of(cls, settings: Settings) -> "OAuthConfig":
        """Read the settings.

        Raises:
            BadSetting: an issuer that could be impersonated, or no audience.
        """
        issuer = settings.oauth_issuer
        for variable, url in (
            ("METAFORGE_OAUTH_ISSUER", issuer),
            ("METAFORGE_OAUTH_JWKS_URL", settings.oauth_jwks_url),
        ):
            if url and not is_safe_url(url):
                raise BadSetting(
                    f"{variable}={url!r} is refused: use https (http is for an issuer on this machine), "
                    "or others could hand out keys in its name"
                )
        audiences = settings.oauth_audience
        if not audiences and settings.public_url:
            audiences = (resource_of(settings.public_url),)
        if not audiences:
            raise BadSetting(
                "Which tokens are for this server? Set METAFORGE_OAUTH_AUDIENCE to what the issuer writes into `aud`, "
                "or METAFORGE_PUBLIC_URL to the URL clients use: its /mcp is then the audience"
            )
        approve_scope = "" if settings.oauth_approve_scope == "none" else settings.oauth_approve_scope
        return cls(issuer, audiences, settings.oauth_jwks_url, settings.oauth_scopes, approve_scope)


def resource_of(public_url: str) -> str:
    """Return the identifier of the MCP endpoint below a server's URL."""
    return public_url.rstrip("/") + "/mcp"


def is_safe_url(url: str) -> bool:
    """Whether what is read from a URL comes from whom it names: https, or this machine."""
    scheme = url.partition("://")[0].lower()
    host = host_of(url)
    return bool(host) and (scheme == "https" or (scheme == "http" and is_loopback(host)))
