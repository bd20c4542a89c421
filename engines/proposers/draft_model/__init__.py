"""Draft with a smaller model of the same tokenizer, on a decoder and a cache of its own."""
