"""The print file: tables found by their headings, whatever version wrote them."""

from metaforge.formats.dat import read_buckling_factors, read_effective_mass, read_frequencies

FREQUENCIES = """
     E I G E N V A L U E   O U T P U T

 MODE NO    EIGENVALUE                       FREQUENCY
                                     REAL PART            IMAGINARY PART
                           (RAD/TIME)      (CYCLES/TIME     (RAD/TIME)

      7   0.2765120E+08   0.5258441E+04   0.8369069E+03   0.0000000E+00
      8   0.2806096E+08   0.5297260E+04   0.8430851E+03   0.0000000E+00

     P A R T I C I P A T I O N   F A C T O R S

MODE NO.   X-COMPONENT     Y-COMPONENT     Z-COMPONENT     X-ROTATION      Y-ROTATION      Z-ROTATION

      7   0.9571590E-04   0.2670782E-02  -0.1978823E-03  -0.1464536E-01   0.2811588E-02   0.1605027E-01

     E F F E C T I V E   M O D A L   M A S S

MODE NO.   X-COMPONENT     Y-COMPONENT     Z-COMPONENT     X-ROTATION      Y-ROTATION      Z-ROTATION

      7   0.5711163E-07   0.3648253E-32   0.4003573E-36   0.1303652E-30   0.1944684E-05   0.3212529E-07

     T O T A L   E F F E C T I V E   M A S S

                0.7000000E-07   0.1000000E-32   0.1000000E-36   0.1000000E-30   0.1000000E-05   0.3000000E-07
"""
BUCKLING = "\n     B U C K L I N G   F A C T O R   O U T P U T\n\n MODE NO       BUCKLING\n                FACTOR\n\n      1   0.4815456E+02\n      2   0.1063175E+03\n"  # noqa: E501


def test_frequencies_keep_their_mode_numbers() -> None:
    modes = read_frequencies(FREQUENCIES)
    assert [(mode.number, mode.frequency_hz) for mode in modes] == [(7, 836.9069), (8, 843.0851)]


def test_the_modal_mass_is_not_the_total_mass() -> None:
    assert [(number, values[0]) for number, values in read_effective_mass(FREQUENCIES)] == [(7, 0.5711163e-07)]


def test_buckling_factors_are_read() -> None:
    assert read_buckling_factors(BUCKLING) == [48.15456, 106.3175]


def test_a_file_without_tables_gives_nothing() -> None:
    assert read_frequencies("") == []
    assert read_buckling_factors(FREQUENCIES) == []
