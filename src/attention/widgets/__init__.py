"""The explorers: figures that answer the reader's hand, in the page and in a notebook.

Beside them `Question`, which takes the answer to a question of the book in a notebook.
"""

from ._base import Explorer, static_module
from .attention_view import AttentionView
from .block_tour import BlockTour
from .generation import Generation
from .heads import Heads
from .journey import Journey
from .masks import Masks
from .online_softmax import OnlineSoftmax
from .patches import PatchAttention
from .paths import Paths
from .positions import Positions
from .qkv_plane import QKVPlane
from .question import Question
from .root_dk import RootDk
from .rotary_arrows import RotaryArrows
from .sinusoids import Sinusoids
from .step_by_step import StepByStep
from .temperature import Temperature
from .train_here import TrainHere
from .write import Write

__all__ = [
    "AttentionView",
    "BlockTour",
    "Explorer",
    "Generation",
    "Heads",
    "Journey",
    "Masks",
    "OnlineSoftmax",
    "PatchAttention",
    "Paths",
    "Positions",
    "QKVPlane",
    "Question",
    "RootDk",
    "RotaryArrows",
    "Sinusoids",
    "StepByStep",
    "Temperature",
    "TrainHere",
    "Write",
    "static_module",
]
