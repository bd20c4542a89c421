"""A client that reads rounds, saying so line by line, until it is killed."""

import sys

import grpc

from outrider.v1 import generation_pb2, settings_pb2
from outrider.v1.generation_service_pb2 import StreamGenerateRequest
from outrider.v1.generation_service_pb2_grpc import GenerationServiceStub


def main(address: str) -> None:
    """Stream one long answer."""
    generation = generation_pb2.Generation(
        text="Once upon a time",
        settings=settings_pb2.GenerationSettings(max_new_tokens=400, stop_on_eos=False),
    )
    with grpc.insecure_channel(address) as channel:
        stub = GenerationServiceStub(channel)
        for response in stub.StreamGenerate(StreamGenerateRequest(generation=generation)):
            if response.HasField("round"):
                print("round", flush=True)  # noqa: T201 - its parent waits for it


if __name__ == "__main__":
    main(sys.argv[1])
