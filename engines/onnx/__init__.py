"""Run bundles with ONNX Runtime on CPU."""
