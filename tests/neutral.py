"""Settings under which a row's probabilities are as the model gives them."""

from dataclasses import replace

from service.generation.config import ResolvedGenerationConfig

SAMPLED = ResolvedGenerationConfig(
    do_sample=True,
    temperature=1.0,
    top_k=0,
    top_p=1.0,
    min_p=0.0,
    repetition_penalty=1.0,
    repeat_last_n=64,
    frequency_penalty=0.0,
    presence_penalty=0.0,
    max_new_tokens=None,
)
GREEDY = replace(SAMPLED, do_sample=False, temperature=0.0)
