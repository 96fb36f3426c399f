"""Attention, from the formula to small trained transformers: the code that the book runs."""

from .blocks import DecoderBlock, EncoderBlock, FeedForward, SubLayer
from .byte_pairs import BytePairs, learn_merges
from .config import BlockConfig, ModelConfig
from .data import (
    PronounTask,
    pronoun_task,
    reversal_pairs,
    translation_pairs,
    weather_corpus,
    weather_sentences,
)
from .device import describe_device, device
from .embedding import POSITIONS, Embedding
from .encoder_decoder import EncoderDecoder
from .example import FEATURES, cat_sentence
from .functional import (
    attention,
    entropy,
    fused_attention,
    softmax,
    softmax_jacobian,
)
from .masks import (
    causal_mask,
    padding_mask,
    prefix_mask,
    reach,
    sliding_window_mask,
    to_torch_mha_mask,
)
from .models import Encoder, LanguageModel
from .multi_head import KVCache, MultiHeadAttention
from .ngrams import NGrams, longest_copy
from .patching import head_parts, patch_heads
from .positions import (
    LearnedPositions,
    T5Bias,
    alibi_bias,
    alibi_slopes,
    rotary,
    shift_matrix,
    sinusoidal_encoding,
    t5_buckets,
)
from .pretrained import pretrained_facts, pretrained_tales, tale_losses
from .sampling import next_token_probabilities
from .tables import Table, table
from .texts import Text, from_text, tales
from .training import History, next_token_loss, train, translation_loss
from .vision import VisionTransformer, digits, patches
from .vocabulary import Vocabulary, batches

__all__ = [
    "BlockConfig",
    "BytePairs",
    "DecoderBlock",
    "Embedding",
    "Encoder",
    "EncoderBlock",
    "EncoderDecoder",
    "FEATURES",
    "FeedForward",
    "History",
    "KVCache",
    "LanguageModel",
    "LearnedPositions",
    "ModelConfig",
    "MultiHeadAttention",
    "NGrams",
    "POSITIONS",
    "PronounTask",
    "SubLayer",
    "T5Bias",
    "Table",
    "Text",
    "VisionTransformer",
    "Vocabulary",
    "alibi_bias",
    "alibi_slopes",
    "attention",
    "batches",
    "cat_sentence",
    "causal_mask",
    "describe_device",
    "device",
    "digits",
    "entropy",
    "from_text",
    "fused_attention",
    "head_parts",
    "learn_merges",
    "longest_copy",
    "next_token_loss",
    "next_token_probabilities",
    "padding_mask",
    "patch_heads",
    "patches",
    "prefix_mask",
    "pretrained_facts",
    "pretrained_tales",
    "pronoun_task",
    "reach",
    "reversal_pairs",
    "rotary",
    "shift_matrix",
    "sinusoidal_encoding",
    "sliding_window_mask",
    "softmax",
    "softmax_jacobian",
    "t5_buckets",
    "table",
    "tale_losses",
    "tales",
    "to_torch_mha_mask",
    "train",
    "translation_loss",
    "translation_pairs",
    "weather_corpus",
    "weather_sentences",
]
