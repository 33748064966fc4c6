"""The event loop of one simulated process: asyncio's interface over the clock, the random source and the network of a `World`.

The real broker, coordinators and clients run on it unchanged. A process that crashes stops between two callbacks: its scheduled callbacks
never run, its sent messages may still arrive. The loop must never use a real clock, thread or socket; code that tries to gets an error.
"""

from __future__ import annotations

import asyncio
import contextvars
import socket
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, cast

from barnabas.simulation.world import START_S, World

if TYPE_CHECKING:
    from barnabas.simulation.network import SimulatedNetwork
    from barnabas.simulation.sockets import SimulatedSocket

THREAD_S_MAX: Final = 0.002  # the longest duration of a call in a thread
CLOSE_ATTEMPTS_MAX: Final = 100


class Handle(asyncio.TimerHandle):
    """A callback that a process has scheduled, for now or for a time."""

    def __init__(
        self, process: ProcessLoop, when: float, callback: Callable[..., object], args: tuple[Any, ...], context: contextvars.Context | None
    ) -> None:
        super().__init__(when, callback, args, process.as_loop, context)
        self.process = process
        self._what = callback

    @property
    def name(self) -> str:
        """The name in the trace. It must never contain a memory address."""
        callback: Any = self._what
        name: str | None = getattr(callback, "__qualname__", None)
        if name is None and hasattr(callback, "func"):  # of a partial
            name = getattr(callback.func, "__qualname__", None)
        return name or type(callback).__name__


class ProcessLoop:
    """Implements the part of `asyncio.AbstractEventLoop` that is used, see `as_loop`. `clock_offset_s` is by how much the wall clock of
    its machine is ahead; `time()` is the monotonic clock."""

    def __init__(self, world: World, network: SimulatedNetwork, name: str, host: str, clock_offset_s: float = 0.0) -> None:
        self.world = world
        self.network = network
        self.name = name
        self.host = host
        self.clock_offset_s = clock_offset_s
        self.thread_s_max = THREAD_S_MAX
        self.ready: deque[Handle] = deque()
        self.is_alive = True
        self._tasks_made = 0
        self._tasks: set[asyncio.Task[Any]] = set()  # kept after a crash, too: no code of them may run at garbage collection
        self._exception_handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None
        world.add(self)

    @property
    def as_loop(self) -> asyncio.AbstractEventLoop:
        """The loop, typed for callers that need the whole interface; most of it is not implemented."""
        return cast("asyncio.AbstractEventLoop", self)

    # Life cycle

    def run(self, handle: Handle) -> None:
        if handle.cancelled():
            return
        events._set_running_loop(self.as_loop)
        try:
            handle._run()
        finally:
            events._set_running_loop(None)

    def crash(self) -> None:
        """Ends the process between two callbacks. Its connections are reset, as by the kernel of a machine that runs on."""
        self.is_alive = False
        self.ready.clear()
        self.world.remove(self)
        self.network.process_ended(self)
        self.world.note("crash", self.name)

    def sleep(self, seconds: float) -> None:
        """Like SIGSTOP: its clocks run on, and no callback runs."""
        self.world.pause(self)
        self.network.kernel.call_later(seconds, self.world.resume, self)

    def dispose(self) -> None:
        """After the history: closes unfinished tasks and ignores what they do then."""
        self.is_alive = False
        hook, sys.unraisablehook = sys.unraisablehook, lambda _: None  # for coroutines that cannot be closed
        events._set_running_loop(self.as_loop)
        try:
            while self._tasks:  # closing a task may start cleanup tasks
                task = self._tasks.pop()
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                _close(task.get_coro())
        finally:
            events._set_running_loop(None)
            sys.unraisablehook = hook

    def run_until_complete(self, future: Any) -> Any:
        """Runs the whole world until this is done."""
        task = self._ensure(future)
        self.world.run_until(task.done)
        return task.result()

    def _ensure(self, future: Any) -> asyncio.Future[Any]:
        return self.create_task(future) if asyncio.iscoroutine(future) else cast("asyncio.Future[Any]", future)

    def wall_s(self) -> float:
        return START_S + self.world.now + self.clock_offset_s

    # asyncio's interface: time and callbacks

    def time(self) -> float:
        return self.world.now

    def call_soon(self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None) -> Handle:
        handle = Handle(self, self.world.now, callback, args, context)
        if self.is_alive:
            self.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # there is one thread

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None) -> Handle:
        return self.call_at(self.world.now + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None) -> Handle:
        handle = Handle(self, when, callback, args, context)
        if self.is_alive:
            self.world.at(when, handle)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled handles are skipped when they are due."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self.as_loop)

    def create_task(self, coro: Any, *, name: str | None = None, context: contextvars.Context | None = None) -> asyncio.Task[Any]:
        self._tasks_made += 1
        task = asyncio.Task(coro, loop=self.as_loop, name=name or f"{self.name}-{self._tasks_made}", context=context)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Runs the call as a callback after a short random delay, in place of a thread."""
        future = self.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                result = func(*args)
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        self.call_later(self.world.random.random() * self.thread_s_max, run)
        return future

    def is_running(self) -> bool:
        return self.is_alive

    def is_closed(self) -> bool:
        return not self.is_alive

    def close(self) -> None:
        if self.is_alive:
            self.crash()

    def get_debug(self) -> bool:
        return False

    def set_debug(self, enabled: bool) -> None: ...

    def get_exception_handler(self) -> Any:
        return self._exception_handler

    def set_exception_handler(self, handler: Any) -> None:
        self._exception_handler = handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self.world.failures.append((self.name, error if error is not None else RuntimeError(context.get("message"))))

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._exception_handler is not None:
            self._exception_handler(self.as_loop, context)
        else:
            self.default_exception_handler(context)

    async def shutdown_asyncgens(self) -> None: ...

    async def shutdown_default_executor(self, timeout: float | None = None) -> None: ...

    # asyncio's interface: the network

    def new_socket(self, family: int = socket.AF_INET, kind: int = socket.SOCK_STREAM) -> SimulatedSocket:
        return self.network.socket(self)

    async def getaddrinfo(self, host: Any, port: Any, *, family: int = 0, type: int = 0, proto: int = 0, flags: int = 0) -> list[Any]:
        address = self.network.address_of(str(host), self)
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, int(port or 0)))]

    def add_reader(self, fd: Any, callback: Callable[..., Any], *args: Any) -> None:
        self.network.by_number(fd).on_readable = (callback, args)
        self.network.by_number(fd).notify_readable()

    def remove_reader(self, fd: Any) -> bool:
        self.network.by_number(fd).on_readable = None
        return True

    async def sock_connect(self, sock: Any, address: Any) -> None:
        await sock.connect(address)

    async def create_connection(
        self, protocol_factory: Any, host: Any = None, port: Any = None, *, sock: Any = None, **options: Any
    ) -> Any:
        if options.get("ssl"):
            raise NotImplementedError("There is no TLS in a simulation")
        if sock is None:
            sock = self.new_socket()
            await self.sock_connect(sock, (self.network.address_of(str(host), self), int(port)))
        return await self.connect_accepted_socket(protocol_factory, sock)

    async def connect_accepted_socket(self, protocol_factory: Any, sock: Any, **options: Any) -> Any:
        protocol = protocol_factory()
        transport = sock.attach(protocol)
        made = self.create_future()  # connection_made is called before this method returns
        self.call_soon(made.set_result, None)
        await made
        return transport, protocol


def _close(coroutine: Any) -> None:
    """Closes it repeatedly, because its cleanup may wait again."""
    for _ in range(CLOSE_ATTEMPTS_MAX):
        try:
            coroutine.close()
            return
        except BaseException:
            continue
