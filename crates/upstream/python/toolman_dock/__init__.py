"""The Python side of Toolman's dock: a worker that runs tool files, and a reader that never runs them.

Only the standard library is used, and as little of it as possible is imported before a worker says
`ready`: asyncio, inspect and traceback are loaded when a tool file or a call needs them.
"""
