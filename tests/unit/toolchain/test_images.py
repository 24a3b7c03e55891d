"""Programs out of images: from a registry on this machine that asks for a token, redirects, or breaks off."""

import gzip
import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kumulus.toolchain import accepted, fetch, images, pins, registry, releases, supply
from kumulus.toolchain.errors import ToolchainError, ToolMissing
from kumulus.toolchain.fetch import Limits
from tests.support.mirror import Answer, Mirror, program, serving, sha256, tar
from tests.support.registry import HOST, TOKEN, elf, push
from tests.unit.toolchain.sample import Sample

HERE = releases.platform()
ALPHA = program("1.2.3", padding=200_000)
LAYER = tar({"NOTICE": b"words", "workspace/app": ALPHA})
CHART = tar({"alpha/Chart.yaml": b"name: alpha", "alpha/crds/one.yaml": b"one", "alpha/crds/two.yaml": b"two"})
IMAGE = f"{HOST}/team/alpha:v1.2.3"


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    with serving() as running:
        yield running


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mirror: Mirror) -> Iterator[Sample]:
    made = Sample(tmp_path)
    made.write()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("KUMULUS_MIRROR", f"{mirror.url}/mine")
    monkeypatch.setenv("KUMULUS_TOOLS", "download")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    registry._TOKENS.clear()
    yield made
    pins.load.cache_clear()
    made.close()


def pin(sample: Sample, table: str, member: str = "workspace/app", image: str = IMAGE, tool: str = "alpha") -> None:
    """Say in the sample's pins that a tool is in an image, and in nothing else."""
    text = sample.pins.read_text()
    text = text[: text.index("[[tool]]")] if tool == "alpha" else text
    keep = "" if member else '\nkeep = [{path = "alpha/crds/*.yaml", to = "crds"}]'
    probe = "\nprobe = {args = [\"--version\"], pattern = 'tool (v\\S+)'}" if "url" in table and member else ""
    sample.pins.write_text(
        f'{text}\n[[tool]]\nname = "{tool}"\nversion = "1.2.3"\npurpose = "of an image"\noptional = true{keep}{probe}\n'
        f'[[download]]\ntools = {{{tool} = "{member}"}}\nversion = "1.2.3"\nmegabytes = 1\nimage = "{image}"\n'
        f'source = "this test"\n{HERE} = {table}\n'
    )
    pins.load.cache_clear()


def pinned(body: bytes, repository: str = "team/alpha") -> str:
    return f'{{url = "https://{HOST}/v2/{repository}/blobs/sha256:{sha256(body)}", sha256 = "{sha256(body)}"}}'


def get(sample: Sample) -> Path:
    return supply.built(["alpha"], pins.load(sample.pins))["alpha"]


def test_a_layer_is_a_download_whose_registry_gives_a_token_to_anybody(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER])
    pin(sample, pinned(LAYER))
    assert get(sample).read_bytes() == ALPHA
    asked = [path.partition("?")[0] for path, _ in mirror.asked]
    blob = f"/mine/{HOST}/v2/team/alpha/blobs/sha256:{sha256(LAYER)}"
    assert asked == [f"/mine/v2/{HOST}/team/alpha/blobs/sha256:{sha256(LAYER)}", blob, "/token", blob]
    assert mirror.signed == ["", "", "", f"Bearer {TOKEN}"]


def test_a_registry_that_pulls_others_through_is_a_mirror_too(sample: Sample, mirror: Mirror) -> None:
    push(mirror, f"{HOST}/team/alpha", "v1.2.3", [LAYER], below="/mine/v2")
    pin(sample, pinned(LAYER))
    assert get(sample).read_bytes() == ALPHA


def test_a_redirect_is_followed_without_the_token(sample: Sample, mirror: Mirror) -> None:
    (answer,) = push(mirror, "team/alpha", "v1.2.3", [LAYER])
    answer.location = "/storage/signed?by=the-registry"
    mirror.files[answer.location] = Answer(LAYER)
    pin(sample, pinned(LAYER))
    assert get(sample).read_bytes() == ALPHA
    assert (mirror.asked[-1][0], mirror.signed[-1]) == (answer.location, "")


def test_a_registry_that_only_drips_is_given_up(
    sample: Sample, mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "_LIMITS", Limits(stall=0.5, least=100_000, attempts=1))
    (answer,) = push(mirror, "team/alpha", "v1.2.3", [tar({"workspace/app": random.Random(1).randbytes(100_000)})])
    answer.drip = 0.05
    with pytest.raises(ToolchainError, match=r"cannot be downloaded: only [\d,]+ bytes came in 0.5 s"):
        images.find(registry.image(IMAGE), "workspace/app", HERE)


def test_a_token_from_a_place_that_anybody_can_pretend_to_be_is_not_asked_for(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER])
    pin(sample, pinned(LAYER))
    with serving() as other:
        mirror.realm = other.url
        with pytest.raises(
            ToolchainError, match=f"the token for it would come from {other.url}/token, which is not https"
        ):
            get(sample)
        assert other.asked == []


def test_a_registry_that_gives_no_token_is_said(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER])
    for path in [path for path in mirror.files if path.startswith("/token")]:
        mirror.files[path] = Answer(b"{}")
    pin(sample, pinned(LAYER))
    with pytest.raises(ToolchainError, match="the registry asks for a token, and gives none to users without a name"):
        get(sample)


def test_a_chart_is_a_layer_whose_files_are_kept(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [CHART], index=False)
    pin(sample, pinned(CHART), member="")
    folder = get(sample)
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml")} == {
        "crds/one.yaml",
        "crds/two.yaml",
    }


# --- digests that nobody has published -----------------------------------------------------------------------------


def test_what_has_no_sum_waits_until_its_digest_is_accepted_once(sample: Sample, mirror: Mirror) -> None:
    layer = tar({"./workspace/app": elf(padding=5000)})
    push(mirror, "team/alpha", "v1.2.3", [tar({"NOTICE": b""}), layer])
    pin(sample, "{unpinned = true}")
    with pytest.raises(ToolMissing, match=r"nobody has published a sum of alpha(?s:.*)--with alpha --accept-digest"):
        get(sample)
    assert mirror.asked == []
    (sample.folder / "Pulumi.yaml").write_text("name: mine\nruntime: python\n")
    images.accept([pins.load(sample.pins).tool("alpha")])
    pins.load.cache_clear()
    lock = json.loads((sample.folder / "kumulus.lock").read_text())
    assert lock == {"images": {IMAGE: {HERE: f"sha256:{sha256(layer)}"}}}
    blobs = sum("blobs" in path for path, _ in mirror.asked)
    assert get(sample).read_bytes() == elf(padding=5000)
    # It was fetched when it was looked into.
    assert sum("blobs" in path for path, _ in mirror.asked) == blobs
    assert not list(sample.cache.glob("downloads/*"))


def test_what_was_accepted_is_taken_and_nothing_else_afterwards(sample: Sample, mirror: Mirror) -> None:
    pin(sample, "{unpinned = true}")
    accepted.remember(IMAGE, f"sha256:{sha256(LAYER)}")
    pins.load.cache_clear()
    (answer,) = push(mirror, "team/alpha", "v1.2.3", [LAYER])
    answer.body = tar({"workspace/app": b"another"})
    with pytest.raises(ToolchainError, match=f"sha256 wanted: {sha256(LAYER)}"):
        get(sample)


def test_kai_comes_from_a_registry_whole_and_from_then_on_only_as_it_was_accepted(
    sample: Sample, mirror: Mirror
) -> None:
    programs = {name: elf(padding=5000 + number) for number, name in enumerate(("scheduler", "binder", "podgrouper"))}
    place, below = "kai-scheduler/kai-scheduler", "/mine/ghcr.io/v2"
    layers = {name: tar({"workspace/app": body}) for name, body in programs.items()}
    for name, layer in layers.items():
        push(mirror, f"{place}/{name}", "v0.17.0", [tar({"NOTICE": b""}), layer], below=below)
    chart = tar({"kai-scheduler/crds/queues.yaml": b"one", "kai-scheduler/values.yaml": b"none of it"})
    push(mirror, f"{place}/kai-scheduler", "v0.17.0", [chart], index=False, below=below)
    with pytest.raises(ToolMissing, match=r"--with kai-podgrouper --with kai-crds --accept-digest"):
        supply.provide(["kai"])
    images.accept(pins.load().named("kai"))
    pins.load.cache_clear()
    # Somebody else's machine, with the lock that this project has committed.
    shutil.rmtree(sample.cache)
    supply.provide(["kai"])
    had = supply.built(["kai"])
    assert {name: had[f"kai-{name}"].read_bytes() for name in programs} == programs
    assert [file.name for file in had["kai-crds"].rglob("*.yaml")] == ["queues.yaml"]
    shutil.rmtree(sample.cache)
    mirror.files[f"{below}/{place}/binder/blobs/sha256:{sha256(layers['binder'])}"].body = tar({"workspace/app": elf()})
    with pytest.raises(ToolchainError, match=r"binder-v0.17.0.tar.gz is not the file"):
        supply.provide(["kai"])


@pytest.mark.parametrize(
    "written", ["{", "[]", '{"images": {"a": {"linux-amd64": "sha256:1"}}}', '{"images": {"a": 1}}']
)
def test_a_damaged_lock_is_named_with_the_remedy(sample: Sample, written: str) -> None:
    (sample.folder / "kumulus.lock").write_text(written)
    with pytest.raises(ToolchainError, match=r"^kumulus.lock is damaged: (?s:.*)\n  Take it from version control"):
        accepted.layers()


# --- pinning -------------------------------------------------------------------------------------------------------


def find(member: str = "workspace/app") -> images.Layer:
    return images.find(registry.image(IMAGE), member, HERE)


def test_pinning_prints_the_layer_that_has_the_program(
    sample: Sample, mirror: Mirror, capsys: pytest.CaptureFixture[str]
) -> None:
    layer = tar({"workspace/app": elf("/lib64/ld-linux-x86-64.so.2")})
    push(mirror, "team/alpha", "v1.2.3", [tar({"base": b""}), layer])
    assert images.main([IMAGE, "workspace/app", HERE]) == 0
    said = capsys.readouterr().out
    assert f'[download.{HERE}]\nurl = "https://{HOST}/v2/team/alpha/blobs/sha256:{sha256(layer)}"' in said
    assert f'sha256 = "{sha256(layer)}"' in said
    assert "/lib64/ld-linux-x86-64.so.2" in said


def test_a_program_in_two_layers_or_in_none_is_not_pinned(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER, tar({"workspace/app": elf()})])
    with pytest.raises(ToolchainError, match="2 layers have workspace/app, and exactly one has to"):
        find()
    with pytest.raises(ToolchainError, match="no layer has workspace/other"):
        find("workspace/other")


def test_a_layer_packed_with_zstd_is_not_pinned(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER], media={0: "application/vnd.oci.image.layer.v1.tar+zstd"})
    with pytest.raises(ToolchainError, match="packed with zstd"):
        find()


def test_what_is_no_program_or_does_not_run_here_is_not_accepted(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER])
    with pytest.raises(ToolchainError, match=r"workspace/app of .* is no program for Linux"):
        find()
    push(mirror, "team/alpha", "v1.2.3", [tar({"workspace/app": elf("/nowhere/ld.so")})])
    pin(sample, "{unpinned = true}")
    with pytest.raises(ToolchainError, match=r"alpha v1.2.3 needs /nowhere/ld.so, which this machine does not have"):
        images.accept(pins.load(sample.pins).tools)
    assert not accepted.file().exists()


def test_a_manifest_that_is_not_what_its_digest_says_is_refused(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER])
    (path,) = [path for path in mirror.files if "/manifests/sha256:" in path]
    mirror.files[path].body += b" "
    with pytest.raises(ToolchainError, match="is not what its digest says"):
        find()


@pytest.mark.parametrize("body", [b"no json", b"[]", b"{}", b'{"manifests": []}', gzip.compress(b"x", mtime=0)])
def test_a_registry_that_answers_anything_is_an_error_in_one_line(sample: Sample, mirror: Mirror, body: bytes) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER])
    mirror.files[f"/mine/{HOST}/v2/team/alpha/manifests/v1.2.3"].body = body
    assert images.main([IMAGE, "workspace/app", HERE]) == 1


def test_a_digest_that_would_name_a_file_elsewhere_is_refused(sample: Sample, mirror: Mirror) -> None:
    push(mirror, "team/alpha", "v1.2.3", [LAYER], index=False)
    layers = [{"mediaType": "tar+gzip", "digest": "sha256:../../../outside"}]
    mirror.files[f"/mine/{HOST}/v2/team/alpha/manifests/v1.2.3"].body = json.dumps({"layers": layers}).encode()
    with pytest.raises(ToolchainError, match="a layer's digest is none of sha256"):
        find()


def test_a_reference_that_is_no_image_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert images.main(["alpha:latest", "app"]) == 1
    assert "'alpha:latest' is no image" in capsys.readouterr().err
