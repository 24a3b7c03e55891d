"""What a restore does with each object of a cluster, decided before it does anything. Pure functions."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kumulus.extras.snapshots.families import Objects, families, is_as_it_was, is_remade, is_replaced, roots
from kumulus.extras.snapshots.restored import FORBIDDEN, MEANWHILE, OF_CLAIMS, RELEASED
from kumulus.extras.snapshots.scope import CLAIMS, UserObjects


@dataclass(frozen=True)
class RestorePlan:
    """What a restore does, by the objects' paths."""

    wanted: Objects
    """The snapshot's objects, without those that are left alone."""
    present: Objects
    removed: frozenset[str]
    """What is deleted and not created again by the restore."""
    replaced: frozenset[str]
    """What is deleted and created again, under the same name."""
    changed: frozenset[str]
    """What is changed back in its place."""
    created: frozenset[str]
    """What is created, as it is gone."""
    remade: tuple[str, ...]
    """Names of objects whose controllers create again what they own."""
    left: Mapping[str, tuple[str, ...]]
    """Names of what stays as it is, by the reason."""

    @property
    def deleted(self) -> frozenset[str]:
        """All that is deleted."""
        return self.removed | self.replaced

    @property
    def put(self) -> frozenset[str]:
        """All that is created or changed."""
        return self.replaced | self.changed | self.created

    @property
    def touched(self) -> frozenset[str]:
        """All that the restore does anything with, apart from the times of pods that run on."""
        return self.removed | self.put


def planned(snapshot: Objects, now: UserObjects, only: Collection[str] | None = None) -> RestorePlan:
    """Plan a restore.

    A family of owners and what they own that is not as it was is restored as a whole, or left alone as a whole: if
    something is to be deleted with which a volume claim would go, or that is not among the agreed objects.

    Args:
        only: paths of the objects that may be touched, as agreed before; None for all.
    """
    present = now.objects
    wanted = {
        path: each
        for path, each in snapshot.items()
        if each["kind"] not in CLAIMS and _namespace(each) not in now.left and path.split("/")[-2] not in now.forbidden
    }
    deleted: set[str] = set()
    put: set[str] = set()
    remade: list[str] = []
    alone: dict[str, set[str]] = {OF_CLAIMS: set(), MEANWHILE: set()}
    for family in families(wanted, present):
        if is_as_it_was(family, wanted, present):
            continue
        others = is_remade(family, {**present, **wanted})
        coming = set(roots(family, wanted)) if others else family & wanted.keys()
        going = {
            path for path in family & present.keys() if path not in coming or is_replaced(wanted[path], present[path])
        }
        if others and only is not None:
            # Its controller has already made others, under other names.
            going &= set(only)
        if any(present[path]["metadata"]["uid"] in now.claimants for path in going):
            alone[OF_CLAIMS] |= family
        elif only is not None and not (going | coming) <= set(only):
            alone[MEANWHILE] |= family
        else:
            deleted |= going
            put |= coming
            remade += roots(family, wanted) if others else []
    untouched = set().union(*alone.values())
    left = {RELEASED: now.left, FORBIDDEN: now.forbidden}
    # Of a family, those that have no owner, then or now, stand for all.
    left |= {why: tuple(names({*roots(paths, wanted), *roots(paths, present)})) for why, paths in alone.items()}
    return RestorePlan(
        wanted={path: each for path, each in wanted.items() if path not in untouched},
        present=present,
        removed=frozenset(deleted - put),
        replaced=frozenset(deleted & put),
        changed=frozenset((put & present.keys()) - deleted),
        created=frozenset(put - present.keys()),
        remade=tuple(names(remade)),
        left={why: which for why, which in left.items() if which},
    )


def names(paths: Iterable[str]) -> list[str]:
    """Objects in words: `team-a/web`, or `team-a` for a namespace."""
    return sorted(_name(path.split("/")) for path in paths)


def _name(parts: list[str]) -> str:
    return "/".join((parts[-3], parts[-1])) if len(parts) > 5 else parts[-1]


def _namespace(found: Mapping[str, Any]) -> str:
    return str(found["metadata"].get("namespace") or found["metadata"]["name"])
