"""Tools that wait, meet and return much, for the tests of the protocol."""

TOOLS = {"t.py": '''
    import asyncio, threading, time
    from fastmcp import Context
    from fastmcp.tools import tool

    gate = threading.Event()

    @tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @tool
    def block(ctx: Context):
        """Wait for `release`."""
        ctx.info("waiting")
        gate.wait(60)

    @tool
    def release():
        """Let `block` go on."""
        gate.set()

    @tool
    async def nap(seconds: float = 60.0, ctx: Context = None):
        """Sleep."""
        await ctx.info("asleep")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            print("nap was cancelled")
            raise

    @tool
    async def meet(count: int) -> int:
        """Return when so many of these calls are under way at once."""
        global here
        here = globals().get("here", 0) + 1
        while here < count:
            await asyncio.sleep(0.001)
        return here

    @tool
    def chatter(count: int, ctx: Context) -> int:
        """Tell much."""
        for index in range(count):
            ctx.info("x" * (index % 997))
        return count

    @tool
    def big(size: int):
        """Return a long text."""
        return "x" * size
'''}
