"""Opening graphs: refused when they are broken, or not what the manifest says."""

from dataclasses import replace

import pytest

from engines.bundle.bundle import Bundle
from engines.bundle.manifest import Tensor
from engines.onnx.session import open_session
from service.errors import BundleError


def test_session_of_a_good_bundle_opens(tiny_bundle: Bundle) -> None:
    session = open_session(tiny_bundle, 2)

    assert "logits" in {output.name for output in session.get_outputs()}


def test_session_of_a_broken_graph_names_the_file(tiny_bundle, tmp_path) -> None:
    broken = Bundle(tmp_path, tiny_bundle.manifest)
    broken.graph_path.write_bytes(b"no graph")

    with pytest.raises(BundleError) as caught:
        open_session(broken, 2)

    assert str(broken.graph_path) == caught.value.path


@pytest.mark.parametrize("side", ["inputs", "outputs"])
def test_session_that_differs_from_the_manifest_is_refused(tiny_bundle, side) -> None:
    graph = tiny_bundle.manifest.graph
    tensors = dict(getattr(graph, side))
    tensors["surplus"] = tensors.pop(next(iter(tensors)))
    manifest = replace(tiny_bundle.manifest, graph=replace(graph, **{side: tensors}))

    with pytest.raises(BundleError, match="surplus") as caught:
        open_session(Bundle(tiny_bundle.path, manifest), 2)

    assert f"graph.{side}" == caught.value.field


@pytest.mark.parametrize(
    "tensor", [Tensor("float32", ("B", "2", "T", "32")), Tensor("int64", ("B", "2", "T", "16"))]
)
def test_session_with_another_shape_or_type_is_refused(tiny_bundle, tensor) -> None:
    graph = tiny_bundle.manifest.graph
    inputs = graph.inputs | {"past_key_1": tensor}
    manifest = replace(tiny_bundle.manifest, graph=replace(graph, inputs=inputs))

    with pytest.raises(BundleError, match="disagree on past_key_1") as caught:
        open_session(Bundle(tiny_bundle.path, manifest), 2)

    assert str(tiny_bundle.graph_path) == caught.value.path
