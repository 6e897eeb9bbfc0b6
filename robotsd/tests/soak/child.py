"""A child process that works until it is paused, and then reports what it has seen."""

import asyncio
import collections
import ctypes
import logging
import multiprocessing
import resource
import signal
import time

MOST_FAULTS = 20


class Seen:
    """The answers that a client has received since its last report, and the problems with them."""

    def __init__(self):
        self.counts = collections.Counter()
        self.times = []
        self.failed = []
        self.faults = []
        # Number of times that an idle connection was closed just when the client sent the next
        # request. The client then sends this request again.
        self.races = 0
        # Number of allowed requests of the crawler that exceeds its crawl delay.
        self.passed = 0

    def answer(self, listener, site, status):
        self.counts[listener, site, status] += 1

    def fault(self, text):
        if len(self.faults) < MOST_FAULTS:
            self.faults.append(text)


class Work:
    """The child's side. Each task awaits `turn` before a step, so that no step runs while the child is paused."""

    def __init__(self, pipe):
        self.pipe, self.seen, self.under_way = pipe, Seen(), 0
        self.goes, self.stopped, self.orders = asyncio.Event(), asyncio.Event(), {}

    async def turn(self):
        await self.goes.wait()
        return not self.stopped.is_set()

    async def forever(self, step, pause):
        """Runs steps one after the other. Each begins at least `pause` seconds after the previous one began."""
        while await self.turn():
            began = time.monotonic()
            self.under_way += 1
            try:
                await step()
            finally:
                self.under_way -= 1
            await asyncio.sleep(max(0.0, pause - (time.monotonic() - began)))

    async def obey(self):
        loop, said = asyncio.get_running_loop(), asyncio.Queue()
        loop.add_reader(self.pipe.fileno(), lambda: said.put_nowait(self.pipe.recv()))
        while not self.stopped.is_set():
            order, *words = await said.get()
            if order == "go":
                self.goes.set()
            elif order == "pause":
                self.goes.clear()
                while self.under_way:
                    await asyncio.sleep(0.01)
                self.pipe.send(self.seen)
                self.seen = Seen()
            elif order == "stop":
                self.stopped.set()
                self.goes.set()
            else:
                self.pipe.send(await self.orders[order](*words))


async def run(main, pipe, arguments):
    work = Work(pipe)
    task = asyncio.create_task(main(work, *arguments))
    obeying = asyncio.create_task(work.obey())
    done, _ = await asyncio.wait([task, obeying], return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()
    task.cancel()


def die_with_parent():
    """Makes the kernel kill this process when its parent dies (PR_SET_PDEATHSIG), so that a killed run leaves no processes behind."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


def begin(main, pipe, arguments):
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # asyncio warns about closed connections, but here many connections are closed on purpose.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    try:
        asyncio.run(run(main, pipe, arguments))
    except (EOFError, asyncio.CancelledError):
        pass


class Child:
    """The parent's side. `main` is a coroutine that gets its `Work` and then the arguments."""

    def __init__(self, main, *arguments):
        self.name = main.__name__
        self.pipe, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=begin, args=(main, theirs, arguments), daemon=True)
        self.process.start()
        theirs.close()

    def say(self, *words):
        self.pipe.send(words)

    def heard(self, seconds=60):
        if not self.pipe.poll(seconds):
            raise SystemExit(f"{self.name} does not answer within {seconds} s")
        return self.pipe.recv()

    def order(self, *words):
        self.say(*words)
        return self.heard()

    def stop(self):
        try:
            self.say("stop")
        except OSError:
            pass
        self.process.join(5)
        self.process.kill()
