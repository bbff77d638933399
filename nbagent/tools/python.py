"""The tool that runs code to look at things, and keeps nothing of it.

Code runs in a shallow copy of the namespace; what a cell would keep belongs to `add_cell`. Read `tools`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from nbagent.core.messages import Block, Json, text_block
from nbagent.core.ports import Kernel, Output, Preview, Ran
from nbagent.core.tools import Call, Kind, Result, Tool, tool
from nbagent.tools.cells import first_line
from nbagent.tools.data.pictures import Pictures, looked_at
from nbagent.tools.effects import hints, kind_of
from nbagent.tools.lasting import LastingCode, Piece, as_tried, within
from nbagent.tools.progress import Saying, of_outputs, watched
from nbagent.tools.results import output_blocks


def tools(
    kernel: Kernel,
    *,
    timeout: float | None,
    pictures: Pictures | None = None,
    lasting: LastingCode | None = None,
) -> list[Tool]:
    """Return `run_python`, with a time limit in seconds for each call (None: no limit); `pictures` draws its figures.

    `lasting`: the run's code that may be under way while its model thinks. Without it each call waits for its code.
    """
    under_way = lasting if lasting is not None else LastingCode(None)

    async def run(code: str, limit: float | None, taken: list[Output], saying: Saying) -> Result:
        async with watched(taken.append, saying) as watch:
            ran = await kernel.scratch(code, timeout=within(limit, timeout), emit=watch.emit)
        result = ran_result(dataclasses.replace(ran, outputs=await looked_at(ran.outputs, pictures)))
        if ran.status == "timeout" and (far := of_outputs(ran.outputs)) is not None:
            result = dataclasses.replace(
                result, content=(text_block(f"It had come to: {far.text()}."), *result.content)
            )
        return as_tried(result, ran, limit)

    def kind(given: Json) -> Kind:
        return kind_of(given["code"], Kind.SCRATCH, kernel.namespace())

    def preview(given: Json) -> Preview:
        return Preview("code", given["code"], effects=hints(given["code"], kernel.namespace()))

    @tool(
        kind=kind,
        subject="code",
        title=lambda given: _look(given["code"]),
        preview=preview,
        exact=True,
        amend="code",
    )
    async def run_python(call: Call, code: str, limit: float | None = None) -> Result:
        """Run Python in the notebook's kernel to look at something, and return what it prints and its last value.

        It sees all variables, but keeps nothing: names that it sets or imports are gone afterwards, no cell is added,
        and the person sees no output. Changing an object in place (df["x"] = 1, items.append(1)) does change it: don't.
        To make or keep something (a variable, a plot, a result), use add_cell instead. Top-level await works;
        input() and exit() do not.

        Args:
            code: Python source. The last expression's value is returned; use print for more.
            limit: seconds after which it is stopped, to try how far it comes.
        """
        taken: list[Output] = []

        async def look() -> Sequence[Output]:
            return tuple(taken)

        piece = Piece("the code of run_python", f"“{first_line(code, 40)}”", look)
        return await under_way.run(call, piece, lambda saying: run(code, limit, taken, saying))

    return [run_python]


def ran_result(ran: Ran, *, cells: tuple[str, ...] = ()) -> Result:
    """Return what running code gave as a result for the model, its note (a time limit) first."""
    blocks: list[Block] = output_blocks(ran.outputs)
    if ran.note:
        blocks.insert(0, text_block(ran.note))
    images = sum(block.get("type") == "image" for block in blocks)
    summary = f"{ran.status} in {ran.seconds:.1f} s" + (f", {images} image{'s' * (images > 1)}" if images else "")
    result = Result(tuple(blocks), summary=summary, is_error=ran.status != "ok")
    return dataclasses.replace(result, cells=cells) if cells else result


def _look(code: str) -> str:
    lines = [line for line in code.splitlines() if line.strip()]
    return f"look: {lines[0].strip()[:80]}" + (" …" if len(lines) > 1 else "") if lines else "look"
