"""Schemas: none has a type that msgspec cannot bear."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import pytest
from msgspec import Meta

from ocf.compare import schemas as compare_schemas
from ocf.compare import suite
from ocf.problem import problem_file
from ocf.support import schemas

#: Limits that a number or text of a union may have.
LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length")


def parts(hint: Any) -> Iterator[Any]:
    """A type and all types in it."""
    yield hint
    inner = get_args(hint)
    for child in inner[:1] if get_origin(hint) is Annotated else inner:
        yield from parts(child)


def is_limited_scalar(hint: Any) -> bool:
    if get_origin(hint) is not Annotated or get_args(hint)[0] not in (int, float, str):
        return False
    return any(getattr(meta, limit, None) is not None for meta in hint.__metadata__ for limit in LIMITS)


def is_fatal(hint: Any) -> bool:
    """Whether it is a union of a tuple of fixed length and a scalar with limits: msgspec 0.22 corrupts memory there."""
    if get_origin(hint) not in (Union, UnionType):
        return False
    members = get_args(hint)
    fixed = [m for m in members if get_origin(m) is tuple and Ellipsis not in get_args(m)]
    return bool(fixed) and any(map(is_limited_scalar, members))


def test_the_search_finds_such_a_type() -> None:
    limited = Annotated[Annotated[float, Meta(ge=0)], Meta(description="a number")]
    assert any(map(is_fatal, parts(dict[str, list[limited | tuple[float, float] | None]])))
    assert any(map(is_fatal, parts(Annotated[tuple[int, int] | Annotated[str, Meta(min_length=1)], Meta()])))
    for harmless in (float | tuple[int, int] | None, limited | tuple[float, ...], limited | list[tuple[int, int]]):
        assert not any(map(is_fatal, parts(harmless)))


@pytest.mark.parametrize("module", [schemas, compare_schemas, problem_file, suite], ids=lambda m: m.__name__)
def test_no_schema_has_a_type_that_corrupts_memory(module: ModuleType) -> None:
    types = [value for value in vars(module).values() if isinstance(value, type)]
    found = [t for t in types if is_typeddict(t) or issubclass(t, msgspec.Struct)]
    assert found
    for schema in found:
        for key, hint in get_type_hints(schema, include_extras=True).items():
            assert not any(map(is_fatal, parts(hint))), f"{schema.__name__}.{key}"
