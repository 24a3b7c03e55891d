"""A stack's identity: drawn once, kept from then on, and written on what the stack makes."""

import asyncio
from typing import Any

import pytest
from google.protobuf import struct_pb2

from kumulus.model.identity import STACK_ANNOTATION, STACK_ID, Owner, drawn, is_identity
from kumulus.nodes.errors import ProviderError
from kumulus.provider.engine import PulumiEngine
from kumulus.provider.protocol import provider_pb2
from kumulus.provider.resources.in_cluster import stack_of
from kumulus.provider.resources.state_only import StackIdentityResource
from kumulus.provider.rpc import Servicer
from kumulus.provider.values import from_struct, to_struct
from tests.unit.provider.stored import operation

URN = "urn:pulumi:dev::kumulus::kumulus:index:StackIdentity::stack-identity"
ONE, TWO = "1" * 32, "2" * 32


def checked(seed: bytes, old: dict[str, Any] | None = None, **inputs: Any) -> Any:
    """What the plugin answers the engine, which hands it a random seed."""
    servicer = Servicer(PulumiEngine(None), {StackIdentityResource.token: StackIdentityResource()}, "/program")
    request = provider_pb2.CheckRequest(
        urn=URN, olds=to_struct(old or {}) if old else struct_pb2.Struct(), news=to_struct(inputs), randomSeed=seed
    )
    answer = asyncio.run(servicer.Check(request, None))
    assert not answer.failures, answer.failures
    return from_struct(answer.inputs)["stackId"]


def test_it_is_drawn_from_what_the_engine_gives_and_not_from_any_name() -> None:
    """The same seed gives the same one, so that an update that was planned does what its plan says."""
    assert checked(b"a" * 32) == checked(b"a" * 32)
    assert is_identity(checked(b"a" * 32))
    assert checked(b"a" * 32) != checked(b"b" * 32)
    assert drawn() != drawn()

    # Once drawn, it stays.
    assert checked(b"b" * 32, {"stackId": ONE}) == ONE


def test_it_is_known_in_the_first_preview_already() -> None:
    made = asyncio.run(StackIdentityResource().create(operation(preview=True), {"stackId": ONE}))
    assert made == ("", {"stackId": ONE})


def test_one_that_was_lost_with_its_state_is_imported_by_its_digits() -> None:
    found = asyncio.run(StackIdentityResource().read(operation(), TWO, {}, {}))
    assert found is not None
    assert (found.resource_id, found.inputs, found.outputs) == (TWO, {"stackId": TWO}, {"stackId": TWO})
    with pytest.raises(ProviderError, match=r"'dev' is not an identity; write the 32 digits .*kumulus.io/stack-id"):
        asyncio.run(StackIdentityResource().read(operation(), "dev", {}, {}))


def test_a_refresh_leaves_it_as_it_is() -> None:
    found = asyncio.run(StackIdentityResource().read(operation(), ONE, {"stackId": ONE}, {"stackId": ONE}))
    assert found is not None
    assert found.outputs == {"stackId": ONE}


def test_what_is_no_identity_is_refused() -> None:
    failures = StackIdentityResource().check({}, {"stackId": "dev"}, "/").failures
    assert [failure.path for failure in failures] == ["stackId"]


def test_an_object_says_whose_it_is_by_its_label() -> None:
    owner = Owner(ONE, "kumulus/dev")
    assert Owner.of({"labels": owner.labels, "annotations": owner.annotations}) == owner
    assert owner.labels == {STACK_ID: ONE}
    assert Owner.of({"annotations": {STACK_ANNOTATION: "kumulus/dev"}}) is None
    assert Owner.of({}) is None
    assert str(owner) == "the stack kumulus/dev (identity 11111111)"
    # A stack without one marks nothing.
    assert (Owner("", "kumulus/dev").labels, Owner("", "kumulus/dev").annotations) == ({}, {})


def test_a_stack_is_called_by_its_project_and_its_name() -> None:
    assert stack_of(URN) == "kumulus/dev"
    assert stack_of("") == "/"
