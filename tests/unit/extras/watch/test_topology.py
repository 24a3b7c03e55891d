"""`kumulus topology`: the tree, the picture, and what is said of mistakes; all from the stack file alone."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
import yaml

from kumulus.cli import main
from kumulus.extras.watch.commands.topology import tree
from kumulus.extras.watch.commands.topology_svg import picture
from kumulus.model.pools import Pool
from kumulus.stackfile.expand import pools
from kumulus.stackfile.model import ClusterSpec

SVG = "{http://www.w3.org/2000/svg}"


def group(name: str, zones: dict[str, int], **more: Any) -> dict[str, Any]:
    placement = [{"availabilityZone": zone, "replicas": replicas} for zone, replicas in zones.items()]
    return {"name": name, "placement": placement, **more}


RACKS = {"nodesPerRack": 4, "racksPerBlock": 2, "nodesPerNvlinkDomain": 2}
CLUSTER = {
    "nodeGroups": [
        group("h100", {"z1": 21, "z2": 4}, instanceType="a3-highgpu-8g", topology=RACKS),
        group("cpu", {"z1": 3}, instanceType="n2-standard-8"),
    ]
}


def made(cluster: dict[str, Any]) -> list[Pool]:
    return pools(ClusterSpec.checked(cluster), "dev")


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def squares(svg: str) -> dict[str, int]:
    """Nodes drawn, by colour; those of the legend not counted."""
    found: dict[str, int] = {}
    legend: set[str] = set()
    for element in ElementTree.fromstring(svg).iter(f"{SVG}rect"):
        if element.get("width") == element.get("height") == "11" and element.get("stroke") is None:
            colour = str(element.get("fill"))
            found[colour] = found.get(colour, 0) + 1
        elif element.get("stroke") == "none":
            legend.add(str(element.get("fill")))
    assert set(found) <= legend, "every colour is explained"
    return found


def test_the_tree_puts_what_is_alike_on_one_line() -> None:
    assert tree("dev", made(CLUSTER)).splitlines() == [
        "dev: 28 nodes, 200 GPUs",
        "├─ zone z1: 24 nodes",
        "│  ├─ h100 · a3-highgpu-8g · 21 nodes · 168 × NVIDIA-H100-80GB-HBM3",
        "│  │  ├─ 2 blocks b0 … b1: 8 nodes each",
        "│  │  │  └─ 2 racks r0 … r1: 4 nodes each",
        "│  │  │     └─ 2 NVLink domains nvl0 … nvl1: 2 nodes each",
        "│  │  └─ block b2: 5 nodes",
        "│  │     ├─ rack r4: 4 nodes",
        "│  │     │  └─ 2 NVLink domains nvl8 … nvl9: 2 nodes each",
        "│  │     └─ rack r5: 1 node",
        "│  │        └─ NVLink domain nvl10: 1 node",
        "│  └─ cpu · n2-standard-8 · 3 nodes",
        "└─ zone z2: 4 nodes",
        "   └─ h100 · a3-highgpu-8g · 4 nodes · 32 × NVIDIA-H100-80GB-HBM3",
        "      └─ block b0: 4 nodes",
        "         └─ rack r0: 4 nodes",
        "            └─ 2 NVLink domains nvl0 … nvl1: 2 nodes each",
    ]


def test_the_tree_of_an_empty_stack_is_one_line() -> None:
    assert tree("dev", []) == "dev: 0 nodes, 0 GPUs"
    assert tree("dev", made({"nodeGroups": [group("a", {"z": 0}, instanceType="m5.xlarge", topology=RACKS)]})) == (
        "dev: 0 nodes, 0 GPUs\n└─ zone z: 0 nodes\n   └─ a · m5.xlarge · 0 nodes"
    )


def test_the_picture_has_a_square_for_every_node_and_names_every_domain() -> None:
    svg = picture("dev", made(CLUSTER))
    assert sorted(squares(svg).values()) == [3, 25]
    said = texts(svg)
    assert {"zone z1 · 24 nodes", "b2", "r5", "nvl10", "NVIDIA-H100-80GB-HBM3", "other nodes", "rack"} <= set(said)
    assert said.count("r0") == 2
    assert "leaf switch" not in said


def test_a_large_stack_is_drawn_in_part_and_the_rest_is_counted() -> None:
    large = {"nodeGroups": [group("a", {"z": 10_000}, instanceType="p5.48xlarge", topology=RACKS)]}
    svg = picture("dev", made(large))
    assert "and 1,242 more blocks" in texts(svg)
    assert squares(svg) == {"#2f6fb2": 8 * 8}
    flat = {"nodeGroups": [group("a", {"z": 10_000}, instanceType="p5.48xlarge")]}
    assert "+9,964" in texts(picture("dev", made(flat)))
    assert len(svg) < 100_000


def test_the_picture_of_an_empty_stack_is_an_empty_picture() -> None:
    assert texts(picture("a<b", [])) == ["a<b: 0 nodes, 0 GPUs"]
    nothing = {"nodeGroups": [group("a", {"z": 0}, instanceType="m5.xlarge", topology=RACKS)]}
    assert squares(picture("dev", made(nothing))) == {}


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: sample\nruntime: python\nstackConfigDir: stacks\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kumulus.cli.main.enter_venv", lambda: None)
    return tmp_path


def write(root: Path, cluster: Any, stack: str = "dev") -> None:
    (root / "stacks" / f"Pulumi.{stack}.yaml").write_text(yaml.safe_dump({"config": {"kumulus:cluster": cluster}}))


def test_it_reads_the_stack_file(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, CLUSTER)
    assert main.main(["topology", "-s", "dev"]) == 0
    assert capsys.readouterr().out.startswith("dev: 28 nodes, 200 GPUs\n├─ zone z1")
    assert main.main(["topology", "-s", "dev", "--svg", "-"]) == 0
    assert squares(capsys.readouterr().out)
    assert main.main(["topology", "-s", "dev", "--svg", str(root / "t.svg")]) == 0
    assert squares((root / "t.svg").read_text())


def test_mistakes_are_told_as_in_a_preview(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, {"nodeGroups": [group("a", {"z": 1}, instanceType="a3-highgpu-9g")]})
    assert main.main(["topology", "-s", "dev"]) == 1
    said = capsys.readouterr().err
    assert "error: 1 problem in stacks/Pulumi.dev.yaml" in said
    assert 'nodeGroups[0].instanceType: "a3-highgpu-9g" is not in the catalog; write a3-highgpu-8g' in said
    assert main.main(["topology", "-s", "dav"]) == 1
    assert "there is no stacks/Pulumi.dav.yaml (did you mean dev?)" in capsys.readouterr().err
    (root / "stacks" / "Pulumi.dev.yaml").write_text("config: [\n")
    assert main.main(["topology", "-s", "dev"]) == 1
    assert "stacks/Pulumi.dev.yaml" in capsys.readouterr().err
    (root / "stacks" / "Pulumi.dev.yaml").write_text("")
    assert main.main(["topology", "-s", "dev"]) == 1
    assert "cluster: is missing" in capsys.readouterr().err


def test_a_picture_that_cannot_be_written_is_told(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(root, CLUSTER)
    assert main.main(["topology", "-s", "dev", "--svg", str(root / "no" / "t.svg")]) == 1
    assert "cannot be written" in capsys.readouterr().err


# --- the documents ---------------------------------------------------------------------------------------------------


def test_the_documents_show_what_the_command_draws() -> None:
    from tests.unit.toolchain.sample import ROOT

    stack = yaml.safe_load((ROOT / "stacks" / "Pulumi.racks.yaml").read_text())
    racks = made(stack["config"]["kumulus:cluster"])
    assert (ROOT / "docs" / "pictures" / "racks.svg").read_text() == picture("racks", racks)
    assert tree("racks", racks).rstrip() in (ROOT / "docs" / "fleets.md").read_text()
