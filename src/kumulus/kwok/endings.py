"""What comes next in the life of a running pod without a lifecycle, in jq: mostly how it ends, and when.

A pod of a Job completes after the delay in its annotation. Any other that is not restarted for ever runs as long as its
command says, and ends as the command says, if it is understood: ``sleep N``, ``sleep inf``, ``tail -f /dev/null``,
``pause``, ``true``, ``false``, and ``exit N`` in a shell's ``-c``, also one after the other with ``;`` or ``&&``, and
with ``echo`` between them. A command with anything else in it is not understood at all. Then a pod of a batch Job
completes at once, which is assumed, and every other one stays.

No check passes by that assumption: a pod that must_run.toml takes for a check fails instead. It also fails where the
containers' commands are understood, if an init container's is not: that one may do the checking.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from kumulus.kwok import lifecycle_states as states
from kumulus.kwok.stages import Match, is_in
from kumulus.model.lifecycles import DELAY_ANNOTATION
from kumulus.model.owner_kinds import BATCH_JOB

_MUST_RUN = tomllib.loads(Path(__file__).with_name("must_run.toml").read_text(encoding="utf-8"))

# KWOK's jq and its Go templates both have Go's regular expressions.
_STEP = r"(sleep +[0-9]+(\.[0-9]+)?[smhd]?|echo( [^;&|<>$`\n]*)?|true|:)"
_STEPS = rf"^\s*({_STEP}\s*(;|&&|\n)\s*)*"
_ENDS = rf"{_STEPS}({_STEP}|false|exit( +[0-9]{{1,3}})?)\s*;?\s*$"
_FAILS = rf"{_STEPS}(false|exit +0*[1-9][0-9]*)\s*;?\s*$"
_FOREVER = rf"{_STEPS}(sleep +inf(inity)?|tail +-f +/dev/null|pause)\b"

# `script` of a container: what it runs, as a line; of a program with a path, the last part. The image pause has no
# command. `life` of a container: the seconds that it runs, `infinite`, or null where its command is not understood.
_LIFE = f"""\
def script:
  ((.command // []) + (.args // [])) as $words
  | if $words == [] then (.image | if test("(^|/)pause[:@]") then "pause" else "" end)
    elif ($words[0] | test("(^|/)(ba|da|a|z)?sh$")) and ($words[1] // "" | test("^-[a-z]*c$")) then $words[2] // ""
    else $words | join(" ") | sub("^[^ ]*/"; "") end;
def life:
  script
  | if test({json.dumps(_FOREVER)}) then infinite
    elif test({json.dumps(_ENDS)}) then
      [match("sleep +([0-9.]+)([smhd]?)"; "g") | .captures
        | (.[0].string | tonumber) * ({{"m": 60, "h": 3600, "d": 86400}}[.[1].string] // 1)] | add // 0
    else null end;
"""

# `delay` of a pod: the seconds in its annotation, or null without one. KWOK's own stage completes a pod at once if the
# annotation is no Go duration; so does this.
_DELAY = f"""\
def delay:
  .metadata.annotations[{json.dumps(DELAY_ANNOTATION)}]? // null
  | if . == null then null
    elif test("^([0-9]+(\\\\.[0-9]*)?(h|m|s|ms|us|µs|ns))+$") then
      [match("([0-9]+(?:\\\\.[0-9]*)?)(ms|us|µs|ns|h|m|s)"; "g") | .captures
        | (.[0].string | tonumber)
          * {{"h": 3600, "m": 60, "s": 1, "ms": 0.001, "us": 0.000001, "µs": 0.000001, "ns": 0.000000001}}[.[1].string]]
      | add
    else 0 end;
"""


def _any_of(words: list[str]) -> str:
    """A regular expression of any of these words, as a string of jq."""
    return json.dumps("|".join(map(re.escape, words)))


# `checks` of a pod: whether it is there to find out whether something works. `unclear` of a pod: whether an init
# container does something that is not understood.
_CHECKS = f"""\
def checks:
  (.metadata.name | test({_any_of(_MUST_RUN["names"])}))
  or any(.spec.containers[], .spec.initContainers[]?;
    "\\(.name) \\(.image // "" | sub("[:@][^/]*$"; ""))" | test({_any_of(_MUST_RUN["containers"])}))
  or (.metadata.labels // {{}} | to_entries | any({json.dumps(_MUST_RUN["labels"])}[.key] == .value))
  or (.metadata.annotations // {{}} | to_entries
    | any({json.dumps(_MUST_RUN["annotations"])}[.key] as $word | .value | split("[, ]+"; null) | index($word)));
def unclear:
  any(.spec.initContainers[]? | select(.restartPolicy != "Always"); life == null);
"""

# `ending` of a pod whose containers are all ready, and `next` of any that runs: what it is, since when the pod waits
# for it, and for how many seconds.
_NEXT = f"""\
{_LIFE}{_DELAY}{_CHECKS}
def ending:
  delay as $delay
  | [.spec.containers[] | life] as $lives
  | if $delay and any(.metadata.ownerReferences[]?; .kind == "Job") then ["completes", .status.startTime, $delay]
    elif .spec.restartPolicy == "Always" or any($lives[]; . == infinite) then ["stays", .status.startTime, infinite]
    elif all($lives[]; . != null) and (unclear and checks | not)
      then ["exits", {states.CONTAINERS_STARTED}, ($lives | max)]
    elif {BATCH_JOB.jq()} then [if checks then "refuses" else "completes" end, .status.startTime, 0]
    else ["stays", .status.startTime, infinite] end;
def next:
  [.status.containerStatuses[]? | select(.state.running) | .ready] as $ready
  | .spec.activeDeadlineSeconds as $most
  | if $ready == [] then ["restarts", {states.CONTAINERS_ENDED}, ({states.BACK_OFF})]
    elif any($ready[]; not) then
      ["starts", {states.CONTAINERS_STARTED},
        ([.spec.containers[] | .readinessProbe, .startupProbe | .initialDelaySeconds // 0] | max)]
    else
      .status.startTime as $start
      | ending
      | if $most and (.[1] | fromdate) + .[2] > ($start | fromdate) + $most then ["exceeds", $start, $most] else . end
    end;
"""

HAS_PROBES = is_in(
    "(any(.spec.containers[] | .readinessProbe, .startupProbe; (.initialDelaySeconds // 0) > 0) | tostring)", "true"
)
"""The condition of pods that have a probe which does not begin at once."""


def next_is(what: str) -> Match:
    """The condition that this is next for a running pod.

    It ``starts``: becomes ready; ``completes``: succeeds; ``refuses``: fails, as it is a check; ``exits``: as its
    command says; ``exceeds``: fails at its deadline; ``restarts`` what has ended; or ``stays``.
    """
    return is_in(f"{_NEXT}next | .[0]", what)


def when_next() -> dict[str, Any]:
    """The delay until what is next for a running pod."""
    return states.delay(_NEXT, "(next | .[1])", "(next | .[2])")


INIT_FAILS = (
    f'{_LIFE}any(.spec.initContainers[]?; .restartPolicy != "Always" and (script | test({json.dumps(_FAILS)})))'
    " | tostring"
)
"""jq: whether the command of an init container fails, as ``true`` or ``false``."""


def when_init_fails() -> dict[str, Any]:
    """The delay until the init container of :data:`INIT_FAILS` fails again."""
    last = "(.status | (.initContainerStatuses // []) | max_by(.restartCount))"
    ended = f"({last} | (.state.terminated // .lastState.terminated).finishedAt // (now | todate))"
    count = f"({last}.restartCount // 0)"
    return states.delay("", ended, f"(if {count} == 0 then 0 else [300, 10 * pow(2; {count} - 1)] | min end)")


EXIT_CODE = r"""
{{ $words := concat (or .command list) (or .args list) | join " " }}
{{ $code := regexFind "exit +[0-9]+[;\\s]*$" $words | regexFind "[0-9]+" | default "0" | int }}
{{ if regexMatch "(^|[/;&\\s])false[;\\s]*$" $words }}{{ $code = 1 }}{{ end }}
"""
"""A Go template, within a range over containers: `$code` is how one whose command is understood ends."""

FAILING = f"""
{{{{ range $root.spec.containers }}}}
{{{{ if eq .name $status.name }}}}
{EXIT_CODE}
{{{{ if $code }}}}{{{{ $end = merge (dict "exitCode" $code "reason" "Error") $end }}}}{{{{ end }}}}
{{{{ end }}}}
{{{{ end }}}}
"""
"""A Go template: puts into `$end` how a container with the status `$status`, whose command is understood, ends."""
