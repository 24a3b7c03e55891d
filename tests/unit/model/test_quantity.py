"""Kubernetes quantities: read and written as apimachinery does."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kumulus.model.quantity import LARGEST, NANO, Quantity, QuantityError, canonical, equal, human, parse

# What k8s.io/apimachinery v0.35.4 makes of these (ParseQuantity, then CanonicalizeBytes).
APIMACHINERY = {
    "0": "0",
    "0Gi": "0",
    "0e5": "0",
    "1000": "1k",
    "1024Mi": "1Gi",
    "0.5": "500m",
    ".5": "500m",
    "5.": "5",
    "1.G": "1G",
    "1.5Ti": "1536Gi",
    "1536Ki": "1536Ki",
    "0.5Ki": "512",
    "0.1Ki": "102400m",
    "1.0005Ki": "1024512m",
    "1e3": "1e3",
    "1E3": "1e3",
    "1e+3": "1e3",
    "1e-3": "1e-3",
    "12e5": "1200e3",
    "1e19": "10e18",
    "1E": "1E",
    "5000P": "5E",
    "100m": "100m",
    "1500m": "1500m",
    "2000m": "2",
    "0.0005": "500u",
    "1n": "1n",
    "0.1n": "1n",
    "-5": "-5",
    "-1.5Gi": "-1536Mi",
    "+7k": "7k",
    "8Ei": "9223372036854775807",
    "16Ei": "9223372036854775807",
    "999999999999999999999": "999999999999999999999",
    "4329600Gi": "4329600Gi",
}


@pytest.mark.parametrize(("written", "expected"), APIMACHINERY.items())
def test_canonical_form_is_the_api_servers(written: str, expected: str) -> None:
    assert canonical(written) == expected


REFUSED = ["", " 1", "1 ", "1 Gi", "1K", "1i", "1kk", "1Gib", "1GB", "1e", "e3", ".", "+", "-", "--1", "1e1000", "1,5"]


@pytest.mark.parametrize("written", [*REFUSED, "0x10", "١", "1\n", "nan", "9" * 101, True, None, [], {}, float("nan")])
def test_what_is_no_quantity_is_refused(written: object) -> None:
    with pytest.raises(QuantityError):
        parse(written)  # type: ignore[arg-type]


def test_a_number_too_long_to_print_is_refused() -> None:
    with pytest.raises(QuantityError, match="too long"):
        parse(10**5000)


@pytest.mark.parametrize(("written", "hint"), [("1360GB", "B"), ("4K", "Ki"), ("1 Gi", "blank"), ("", "empty")])
def test_common_slips_are_named(written: str, hint: str) -> None:
    with pytest.raises(QuantityError, match=hint):
        parse(written)


def test_numbers_are_quantities_since_yaml_makes_them() -> None:
    assert canonical(96) == "96"
    assert canonical(0.1) == "100m"
    assert canonical(96.0) == "96"
    assert canonical(1e22) == "10e21"


def test_equal_amounts_are_equal_however_written() -> None:
    assert equal("1Gi", 1024**3)
    assert equal("1e3", "1k")
    assert equal("0.5", "500m")
    assert not equal("1G", "1Gi")


def test_sums_are_exact_beyond_what_floats_hold() -> None:
    largest = Quantity(LARGEST * NANO, "binary")
    assert (largest * 100_000 + Quantity(1)).nanos == LARGEST * NANO * 100_000 + 1
    assert str(parse("8191Pi") * 1024 * 1024) == "8387584Ei"


def test_a_sum_is_written_as_its_parts_are() -> None:
    assert str(parse("512Mi") + parse("512Mi")) == "1Gi"
    assert str(parse("0") + parse("512Mi")) == "512Mi"
    assert str(parse("1Gi") - parse("1Gi")) == "0"


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("memory", "4080Gi", "3.98 TiB"),
        ("memory", "4329600Gi", "4.13 PiB"),
        ("memory", "1360Gi", "1.33 TiB"),
        ("memory", "1023Gi", "1,023 GiB"),
        ("memory", "1023.7Ki", "1 MiB"),
        ("memory", "2Gi", "2 GiB"),
        ("memory", "20Gi", "20 GiB"),
        ("memory", "0", "0 B"),
        ("memory", "-4080Gi", "-3.98 TiB"),
        ("ephemeral-storage", "45Ti", "45 TiB"),
        ("hugepages-2Mi", "1Gi", "1 GiB"),
        ("cpu", "367200", "367,200"),
        ("cpu", "1500m", "1.5"),
        ("nvidia.com/gpu", "20400", "20,400"),
    ],
)
def test_amounts_are_readable(resource: str, amount: str, text: str) -> None:
    assert human(resource, parse(amount)) == text


def test_a_number_is_an_int_where_it_can_be() -> None:
    assert parse("96").number() == 96
    assert isinstance(parse("96").number(), int)
    assert parse("1500m").number() == 1.5


suffixes = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "e3", "E-2", "e+5"]
)
quantities = st.builds(
    lambda sign, whole, fraction, suffix: f"{sign}{whole}{fraction}{suffix}",
    st.sampled_from(["", "", "-", "+"]),
    st.integers(0, 10**15) | st.sampled_from([1024, 1000, 1536, 2**40]),
    st.just("") | st.integers(0, 10**6).map(lambda digits: f".{digits}"),
    suffixes,
)


@given(quantities)
def test_canonical_is_equal_to_what_was_written_and_idempotent(written: str) -> None:
    once = canonical(written)
    assert equal(once, written)
    assert canonical(once) == once


@given(st.text(max_size=12) | st.floats() | st.integers())
def test_anything_is_a_quantity_or_a_quantity_error(written: str | float) -> None:
    with suppress(QuantityError):
        assert isinstance(parse(written), Quantity)
