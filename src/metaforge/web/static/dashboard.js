// What keeps pages live: the ledger's events renew marked parts, clocks count down, the 3-D view tells its faults.
// It needs no library. Pages work without it; they are then renewed by loading them again.

const EVENTS_URL = '/v1/approvals/events';
const WORDS = {live: 'Live', lost: 'Connection lost, trying again', off: 'Not live'};

// -- parts that follow the ledger ------------------------------------------------------------------------------------

const renewing = new Map(); // part id -> whether something happened while it was being fetched

async function renew(part) {
  if (renewing.has(part.id)) {
    renewing.set(part.id, true);
    return;
  }
  renewing.set(part.id, false);
  try {
    const answer = await fetch(part.dataset.live, {headers: {'HX-Request': 'true'}, cache: 'no-store'});
    if (answer.status === 401) window.location.reload();
    if (answer.ok && !answer.redirected) replace(document.getElementById(part.id), await answer.text());
  } catch {
    // The stream tells that the server is gone, and asks again when it is back.
  }
  const again = renewing.get(part.id);
  renewing.delete(part.id);
  const now = document.getElementById(part.id);
  if (again && now) renew(now);
}

function replace(old, text) {
  const fresh = new DOMParser().parseFromString(text, 'text/html').getElementById(old?.id);
  if (!old || !fresh || fresh.dataset.version === old.dataset.version) return;
  const known = new Set([...old.querySelectorAll('tr[id]')].map((row) => row.id));
  const focused = old.contains(document.activeElement) ? document.activeElement.id : '';
  old.replaceWith(fresh);
  if (focused) (document.getElementById(focused) ?? fresh.closest('main'))?.focus({preventScroll: true});
  if (known.size) for (const row of fresh.querySelectorAll('tr[id]')) row.classList.toggle('fresh', !known.has(row.id));
  window.htmx?.process(fresh);
  say(fresh.dataset.said);
  tick();
}

function say(words) {
  const said = document.getElementById('said');
  if (said && words && said.textContent !== words) said.textContent = words;
}

function showCount(count) {
  const mark = document.getElementById('waiting');
  if (!mark) return;
  if (count !== undefined) mark.textContent = count ? (count < 1000 ? count : '999+') : '';
  const plain = document.title.replace(/^\(\S+\) /, '');
  document.title = mark.textContent ? `(${mark.textContent}) ${plain}` : plain;
}

function renewParts() {
  document.querySelectorAll('[data-live]').forEach(renew);
}

function showState(state) {
  const mark = document.getElementById('live');
  if (mark) [mark.dataset.state, mark.textContent] = [state, WORDS[state]];
}

function listen() {
  if (!document.body.dataset.events) return;
  const source = new EventSource(EVENTS_URL);
  source.onopen = () => showState('live');
  source.onerror = () => showState(source.readyState === EventSource.CLOSED ? 'off' : 'lost');
  source.addEventListener('approval', renewParts);
  source.addEventListener('pending', (event) => {
    showCount(JSON.parse(event.data).pending_count);
    renewParts();
  });
  window.addEventListener('pagehide', () => source.close(), {once: true});
  window.addEventListener('pageshow', (event) => event.persisted && window.location.reload());
}

// -- clocks ----------------------------------------------------------------------------------------------------------

const ahead = Date.parse(document.body.dataset.now) - Date.now(); // the server's clock decides, not this one's

function tick() {
  for (const clock of document.querySelectorAll('[data-expires]')) {
    const left = Math.max(0, (Date.parse(clock.dataset.expires) - Date.now() - ahead) / 1000);
    clock.toggleAttribute('data-low', left < 20);
    if (clock.tagName === 'PROGRESS') clock.value = left;
    else clock.textContent = left > 0 ? `${clock.dataset.before ?? ''}${spell(left)}` : 'time is up';
  }
}

function spell(seconds) {
  const whole = Math.ceil(seconds);
  const [minutes, rest] = [Math.floor(whole / 60), String(whole % 60).padStart(2, '0')];
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// -- small comforts --------------------------------------------------------------------------------------------------

document.addEventListener('error', (event) => {
  if (event.target.tagName !== 'MODEL-VIEWER') return;
  event.target.dataset.fault = '';
  tellFault(event.target);
}, true);

async function tellFault(model) {
  const told = document.getElementById(`${model.id}-fault`);
  if (!told) return;
  told.hidden = false;
  const answer = await fetch(model.src).catch(() => null);
  if (answer && !answer.ok) told.textContent = await answer.text();
}

document.addEventListener('change', (event) => {
  if (event.target.matches('form.filters select, form[data-goes] select')) event.target.form.requestSubmit();
});

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches('input, textarea, select')) return;
  const rows = [...document.querySelectorAll('table.pick .row')];
  const at = rows.indexOf(document.activeElement);
  if (event.key === '/') document.querySelector('input[type="search"]')?.focus();
  else if (event.key === 'j') rows[Math.min(at + 1, rows.length - 1)]?.focus();
  else if (event.key === 'k') rows[Math.max(at - 1, 0)]?.focus();
  else return;
  event.preventDefault();
});

document.addEventListener('submit', (event) => {
  // A second click must not send a second decision.
  if (event.target.matches('form[data-once]')) setTimeout(() => event.target.querySelectorAll('button').forEach((each) => (each.disabled = true)));
});

tick();
setInterval(tick, 500);
showCount();
listen();
