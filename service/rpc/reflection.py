"""Server reflection, v1alpha and v1: the same messages under two package names.

grpcio-reflection has only v1alpha; v1 is described here by the same file with
the package renamed, and served by the same code, whose bytes are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.descriptor import FileDescriptor, MethodDescriptor
from grpc import aio
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.reflection import SERVICE_NAME as V1ALPHA
from grpc_reflection.v1alpha.reflection import aio as reflection_aio

V1 = "grpc.reflection.v1.ServerReflection"
METHOD = "ServerReflectionInfo"


def add_reflection(server: aio.Server, services: Sequence[str]) -> None:
    """Describe the services, and reflection itself, to whoever asks."""
    _describe_v1()
    servicer = reflection_aio.ReflectionServicer((*services, V1ALPHA, V1), _Symbols())
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        tuple(
            grpc.method_handlers_generic_handler(name, {METHOD: handler}) for name in (V1ALPHA, V1)
        )
    )


class _Symbols:
    """The default descriptor pool, which here also finds the file of a method."""

    def __init__(self) -> None:
        self._pool = descriptor_pool.Default()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)

    def FindFileContainingSymbol(self, symbol: str) -> FileDescriptor:  # noqa: N802 - the pool's
        try:
            return self._pool.FindFileContainingSymbol(symbol)
        except KeyError:
            method: MethodDescriptor = self._pool.FindMethodByName(symbol)
            return method.containing_service.file


def _describe_v1() -> None:
    """Add reflection v1 to the descriptors that reflection serves; again is the same."""
    file = descriptor_pb2.FileDescriptorProto()
    reflection_pb2.DESCRIPTOR.CopyToProto(file)
    old, new = file.package, V1.rpartition(".")[0]
    file.package = new
    file.name = f"{new.replace('.', '/')}/reflection.proto"
    references = [
        *((field, "type_name") for message in file.message_type for field in message.field),
        *((method, "input_type") for method in file.service[0].method),
        *((method, "output_type") for method in file.service[0].method),
    ]
    for holder, name in references:
        if holder.HasField(name):
            setattr(holder, name, getattr(holder, name).replace(f".{old}.", f".{new}."))
    descriptor_pool.Default().Add(file)
