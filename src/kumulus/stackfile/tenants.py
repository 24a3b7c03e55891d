"""Tenants in the stack file: who shares the cluster, in which namespace, with which quota."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kumulus.model.checks import problem
from kumulus.model.errors import Problem, Where, path_text, shown
from kumulus.model.fields import Annotations, Labels, Section, checked, malformed, short_label, text, whole
from kumulus.model.names import ValueMistake
from kumulus.model.quantity import canonical_resources
from kumulus.model.quotas import quota_problems

TENANT_NAME_LENGTH = 40
_WRITING = {"create", "update", "patch", "delete", "deletecollection", "*"}
_KUBERNETES_OWN = ("default", "kube-system", "kube-public", "kube-node-lease")

Role = Literal["view", "edit", "admin"]
PodSecurity = Literal["privileged", "baseline", "restricted"]


def _namespace_mistake(name: str) -> ValueMistake | None:
    if name in _KUBERNETES_OWN or name.startswith("kube-"):
        return ValueMistake("is a namespace of Kubernetes' own", "write another name")
    return None


def _texts_problems(where: Where, raw: object) -> list[Problem]:
    if isinstance(raw, list | tuple) and raw and all(isinstance(each, str) for each in raw):
        return []
    message = f"is {shown(raw) if raw else 'empty'}, not a list of texts"
    return [problem(where, message, "write at least one in brackets")]


Texts = Annotated[tuple[str, ...], checked(_texts_problems, tuple, form="texts")]
Quota = Annotated[dict[str, str], checked(quota_problems, canonical_resources, form="quota")]


class RuleSpec(Section):
    """A permission in the tenant's namespace, written like a rule of an RBAC Role."""

    apiGroups: Texts = Field(examples=["[batch.volcano.sh]"])
    """API groups such as batch.volcano.sh; "" is Kubernetes' core group."""
    resources: Texts = Field(examples=["[jobs]"])
    """Resources in the plural, such as jobs."""
    verbs: Texts = Field(examples=["[get, list, watch, create, delete]"])
    """Verbs such as get, list, watch, create, delete."""

    @model_validator(mode="after")
    def _leaves_quota_alone(self) -> Self:
        core_group, quotas = {"", "*"} & {*self.apiGroups}, {"resourcequotas", "*"} & {*self.resources}
        if core_group and quotas and _WRITING & {*self.verbs}:
            remedy = "name the resources that are meant, without resourcequotas"
            raise malformed([problem((), "would let the tenant change its own quota", remedy)])
        return self


class TenantSpec(Section):
    """A tenant of the cluster: a namespace, a quota, and a kubeconfig limited to it."""

    name: Annotated[str, short_label(TENANT_NAME_LENGTH)] = Field(examples=["research"])
    """The tenant's name, unique in the stack."""
    namespace: Annotated[str, short_label(63), text(_namespace_mistake, form="ownNamespace")] = Field(
        default="", examples=["research"]
    )
    """The namespace created for the tenant; by default it has the tenant's name."""
    quota: Quota = Field(default_factory=dict, examples=['{requests.nvidia.com/gpu: "16", pods: "200"}'])
    """The hard limits of a ResourceQuota, such as `requests.nvidia.com/gpu`, `pods`, `count/jobs.batch`."""
    role: Role = Field(default="edit", examples=["edit"])
    """The built-in ClusterRole that the tenant has in the namespace."""
    rules: list[RuleSpec] = Field(
        default_factory=list, examples=["[{apiGroups: [batch.volcano.sh], resources: [jobs], verbs: [get, create]}]"]
    )
    """Additional permissions, for custom resources."""
    podSecurity: PodSecurity = Field(default="baseline", examples=["baseline"])
    """The Pod Security Standard that is enforced in the namespace."""
    readNodes: bool = Field(default=True, examples=["true"])
    """Whether the tenant may read nodes, which belong to no namespace."""
    labels: Labels = Field(default_factory=dict, examples=["{example.com/cost-center: a1}"])
    """Labels of the namespace."""
    annotations: Annotations = Field(default_factory=dict, examples=["{example.com/owner: research@example.com}"])
    """Annotations of the namespace."""
    credential: Annotated[int, whole(1, 1_000_000)] = Field(default=1, examples=["2"])
    """Another number creates a new credential and revokes the last one."""

    @property
    def home(self) -> str:
        """The name of the tenant's namespace."""
        return self.namespace or self.name


def tenant_problems(tenants: Iterable[tuple[int, Mapping[str, object]]]) -> list[Problem]:
    """Two tenants in one namespace, and a tenant named like one of Kubernetes' own namespaces."""
    wrong: list[Problem] = []
    first: dict[str, Where] = {}
    for index, tenant in tenants:
        key = "namespace" if tenant.get("namespace") else "name"
        name, where = tenant.get(key), ("tenants", index, key)
        if not isinstance(name, str) or not name:
            continue
        if key == "name" and (mistake := _namespace_mistake(name)):
            remedy = "write another name, or give the tenant a namespace"
            wrong.append(problem(where, f"{shown(name)} {mistake.message}", remedy))
        # Two tenants of one name are reported as duplicates.
        elif name in first and "namespace" in (key, first[name][-1]):
            message = f"is the namespace {shown(name)}, which {path_text(first[name][:-1])} already has"
            wrong.append(problem(where, message, "write another namespace: a quota is for one tenant"))
        first.setdefault(name, where)
    return wrong
