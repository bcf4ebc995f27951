"""List the usual scenes with their sampling, which people can add to an assistant and change.

Temperature and top_p are values that people have settled on for these kinds of work; the
temperature is clamped when it is sent (`assistants.turn_config`), so that 0.0 becomes 0.1.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ScenePreset:
    label: str
    temperature: float
    top_p: float
    prompt: str
    examples: tuple[str, ...]


SCENE_PRESETS: tuple[ScenePreset, ...] = (
    ScenePreset(
        "Code generation",
        0.2,
        0.1,
        "Write code that is correct, complete and conventional for its language.",
        (
            "Write a Python function that sorts a list of dictionaries by a key.",
            "Implement a REST endpoint that returns the user's orders as JSON.",
            "帮我写一个函数，把字符串反转。",
        ),
    ),
    ScenePreset(
        "Creative writing",
        0.7,
        0.8,
        "Write with imagination, a voice of your own and concrete images.",
        (
            "Write a short story about a lighthouse keeper.",
            "Compose a poem about autumn.",
            "写一首关于月亮的诗。",
        ),
    ),
    ScenePreset(
        "Chatbot",
        0.5,
        0.5,
        "Talk naturally, briefly and kindly.",
        (
            "How was your day? I feel a bit lonely tonight.",
            "Tell me something interesting, I am bored.",
            "陪我聊聊天吧。",
        ),
    ),
    ScenePreset(
        "Tool use",
        0.0,
        0.7,
        "Use the tools you are given whenever they can settle a question, with exact arguments.",
        (
            "Look up the current exchange rate and convert 200 euros into dollars.",
            "Search the web for the latest release and open its page.",
            "用工具查一下今天的汇率。",
        ),
    ),
    ScenePreset(
        "Code comments",
        0.1,
        0.2,
        "Explain what code does and why in comments and docstrings; leave the code as it is.",
        (
            "Add docstrings and comments to this class.",
            "Document this function's parameters and return value.",
            "给这段代码加上注释。",
        ),
    ),
    ScenePreset(
        "Data analysis",
        0.2,
        0.1,
        "Analyse data step by step: say what was computed, how, and how sure the result is.",
        (
            "Which columns of this table correlate, and how strongly?",
            "Compute the mean and the variance of monthly sales by region.",
            "分析一下这组销售数据的趋势。",
        ),
    ),
    ScenePreset(
        "Exploratory code",
        0.6,
        0.7,
        "Try several approaches in code, compare them, and say what each would be good for.",
        (
            "Show me different ways to parallelise this loop and compare them.",
            "Let us experiment with alternative data structures for this cache.",
            "用几种不同的方法实现这个算法并比较。",
        ),
    ),
)
"""Source of the pairs: "Cheat sheet: mastering temperature and top_p in the ChatGPT API", OpenAI
community forum (https://community.openai.com/t/172683)."""
