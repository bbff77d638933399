"""Calls a tool as the dispatch does: validate, ask for its kind (the policy), perhaps preview it, run it."""

from __future__ import annotations

import itertools

from nbagent.core.messages import plain_text
from nbagent.core.tools import Call, Toolset


class Calling:
    """A set of tools, called by name with arguments as a model gives them."""

    def __init__(self, tools, person=None, run="run-1"):
        self.tools = Toolset(tools)
        self.run = run
        self._numbers = itertools.count(1)
        self.progress = []
        self.person = person

    async def ask(self, question):
        return await self.person.question(question) if self.person.present else ""

    def given(self, name, **arguments):
        return self.tools[name].validate(arguments)

    def kind(self, name, **arguments):
        return self.tools[name].kind(self.given(name, **arguments))

    def preview(self, name, **arguments):
        return self.tools[name].preview(self.given(name, **arguments))

    def subject(self, name, **arguments):
        return self.tools[name].subject(self.given(name, **arguments))

    def title(self, name, **arguments):
        return self.tools[name].title(self.given(name, **arguments))

    async def carry_out(self, name, **arguments):
        """Run a call on which the policy has decided already."""
        call = Call(f"call_{next(self._numbers)}", self.progress.append, self.ask, "s1", self.run)
        return await self.tools[name].run(call, self.given(name, **arguments))

    def amended(self, name, body, **arguments):
        """Put the text that a person wrote into a call, as the dispatch does, and decide anew; return the new input."""
        tool = self.tools[name]
        given = tool.validate(tool.amend(self.given(name, **arguments), body))
        tool.kind(given)
        tool.preview(given)
        return given

    async def __call__(self, name, **arguments):
        self.kind(name, **arguments)
        return await self.carry_out(name, **arguments)

    async def text(self, name, **arguments):
        return plain_text(list((await self(name, **arguments)).content))
