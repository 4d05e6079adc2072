"""Trains the network of spatial_transformer.py on several machines, and goes on from a checkpoint when one fails.

Every process runs this program and sees its own devices; together they form one mesh. Each process loads its share of
a batch. Parameters and moments of the optimizer are cut over all devices, and gathered where they are used. Each
process writes its parts of them to a checkpoint. The checkpoint also holds the random key, and its step says which
digits come next. So a run that was interrupted goes on with the losses that it would have had.

On a cluster, start it once on each machine: `srun python examples/multi_host.py --checkpoints FOLDER`. JAX learns from
Slurm, Open MPI or a TPU how many processes there are; elsewhere say it by `--coordinator`, `--processes` and
`--process`. All processes must see the same folder. Without any of this, two processes share the CPU of one machine.

If a process ends early, the others end too: at once if their connection breaks, else within 2 HEARTBEAT seconds. Each
says so on stderr, and its exit code is not 0. Start all again to go on from the last checkpoint. When one process gets
SIGTERM, by which clusters announce the end of a job, all write a checkpoint and end.
"""

import argparse
import contextlib
import os
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import orbax.checkpoint as ocp
from flax import nnx
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from spatial_transformer import distort, load, transformed_network
from tqdm import tqdm

BATCH, RATE = 64, 3e-3
STARTUP = 300  # seconds in which all processes must start
HEARTBEAT = 20  # seconds without a sign of life after which JAX takes a process for dead
LIMITS = {"initialization_timeout": STARTUP, "heartbeat_timeout_seconds": HEARTBEAT}
KEPT = 3  # checkpoints

ALONE = f"""\
multi_host.py: this process did not find the others. Start all of them within {STARTUP} seconds, with the same \
--coordinator and --processes, each with its own --process."""
ENDED_EARLY = """\
multi_host.py: process {process} of {count} ended early: it failed, or another process ended. \
Start all processes again to go on from the last checkpoint in {folder}."""

State = dict[str, Any]  # params, moments of the optimizer, and the bits of a random key


def join(args: argparse.Namespace, argv: list[str]) -> list[subprocess.Popen]:
    """Joins the other processes, and starts them on this machine if nobody else does. Returns those that it started."""
    if args.coordinator is args.processes is None:
        try:
            jax.distributed.initialize(**LIMITS)
            return []
        except ValueError:
            print("found no cluster; two processes share the CPU of this machine", flush=True)
            args.processes = 2
    started = []
    if args.coordinator is None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            args.coordinator, args.process = f"127.0.0.1:{free.getsockname()[1]}", 0
        if args.processes > 1:
            # Processes cannot share one GPU.
            jax.config.update("jax_platforms", "cpu")
        for process in range(1, args.processes):
            place = ["--coordinator", args.coordinator, "--processes", str(args.processes), "--process", str(process)]
            command = [sys.executable, __file__, *argv, *place]
            started.append(subprocess.Popen(command, env={**os.environ, "JAX_PLATFORMS": "cpu"}))
    jax.distributed.initialize(args.coordinator, args.processes, args.process, **LIMITS)
    return started


@contextlib.contextmanager
def witness() -> Iterator[Callable[[str], Any]]:
    """Yields a function that says what is printed to stderr if this process ends now; an empty line is not printed.

    When JAX finds that another process is dead, it aborts this one, and Python gets no chance to say anything. So a
    shell listens to this process, and prints the last line that it heard.
    """
    script = 'while read -r line; do last=$line; done; [ -z "$last" ] || printf "%s\n" "$last" >&2'
    shell = subprocess.Popen(
        ["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, bufsize=1
    )
    try:
        yield lambda line: shell.stdin.write(f"{line}\n")
    except (Exception, KeyboardInterrupt):
        # Python's own way out would wait for the other processes.
        traceback.print_exc()
        sys.stdout.flush()
        shell.communicate()
        os._exit(1)
    shell.communicate("\n")


class Trainer:
    """A step of the training, and the state at its start, on a mesh of all devices of all processes."""

    def __init__(self):
        self.mesh = jax.make_mesh((jax.device_count(),), ("devices",), axis_types=(AxisType.Auto,))
        self.everywhere, self.cut = (NamedSharding(self.mesh, spec) for spec in (P(), P("devices")))
        self.graph = nnx.graphdef(nnx.eval_shape(lambda: transformed_network(nnx.Rngs(0))))
        self.optimizer = optax.adam(RATE)
        self.target = jax.tree.map(self.placed, jax.eval_shape(self.fresh))
        shardings = jax.tree.map(lambda array: array.sharding, self.target)
        self.start = jax.jit(self.fresh, out_shardings=shardings)
        self.step = jax.jit(self.stepped, out_shardings=(shardings, self.everywhere), donate_argnums=0)

    def placed(self, array: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
        """Matrices are cut into rows, if each device can have as many."""
        cut = array.ndim > 1 and array.shape[0] % self.mesh.size == 0
        return jax.ShapeDtypeStruct(array.shape, array.dtype, sharding=self.cut if cut else self.everywhere)

    def fresh(self) -> State:
        params = nnx.state(transformed_network(nnx.Rngs(0)))
        return {"params": params, "moments": self.optimizer.init(params), "key": jax.random.key_data(jax.random.key(0))}

    def stepped(self, state: State, images: jax.Array, labels: jax.Array) -> tuple[State, jax.Array]:
        """The next state; the loss, and which part of the batch was read right, as one array."""
        key, distortion = jax.random.split(jax.random.wrap_key_data(state["key"]))
        images = jax.lax.with_sharding_constraint(distort(images, distortion), self.cut)

        def loss(params):
            gathered = jax.lax.with_sharding_constraint(params, self.everywhere)
            logits = nnx.merge(self.graph, gathered)(images)
            right = (logits.argmax(-1) == labels).mean()
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), right

        (value, right), slopes = jax.value_and_grad(loss, has_aux=True)(state["params"])
        updates, moments = self.optimizer.update(slopes, state["moments"], state["params"])
        params = optax.apply_updates(state["params"], updates)
        return {"params": params, "moments": moments, "key": jax.random.key_data(key)}, jnp.stack([value, right])

    def batch(self, digits: tuple[np.ndarray, np.ndarray], step: int) -> list[jax.Array]:
        """The digits of a step, of which this process loads its own."""
        epoch, place = divmod(step, len(digits[0]) // BATCH)
        order = np.random.default_rng(epoch).permutation(len(digits[0]))
        chosen = order[place * BATCH : (place + 1) * BATCH]
        own = np.split(chosen, jax.process_count())[jax.process_index()]
        return [jax.make_array_from_process_local_data(self.cut, array[own]) for array in digits]


def train(args: argparse.Namespace) -> None:
    """Trains from the last checkpoint, or from the start. The first process prints how it goes."""
    trainer, first = Trainer(), jax.process_index() == 0
    digits = tuple(np.asarray(array) for array in load(0)[0])
    # Not in a `with`: it would wait for the other processes where one has ended.
    options = ocp.CheckpointManagerOptions(max_to_keep=KEPT)
    manager = ocp.CheckpointManager(args.checkpoints.absolute(), options=options)
    begun = manager.latest_step() or 0
    state = manager.restore(begun, args=ocp.args.StandardRestore(trainer.target)) if begun else trainer.start()
    if first:
        since = f"going on after step {begun}" if begun else "from the start"
        print(
            f"{jax.process_count()} processes, {jax.device_count()} devices; {since}, to step {args.steps}", flush=True
        )

    step, stopped, results = begun, False, []
    with tqdm(initial=begun, total=args.steps, unit="step", mininterval=1, disable=not first) as bar:
        while step < args.steps and not stopped:
            state, result = trainer.step(state, *trainer.batch(digits, step))
            step += 1
            results.append(result)
            bar.update()
            stopped = manager.reached_preemption(step)
            if step % args.every == 0 or step == args.steps or stopped:
                loss, right = np.mean(results, axis=0)
                results.clear()
                manager.save(step, args=ocp.args.StandardSave(state), force=True)
                if first:
                    bar.write(f"step {step}: loss {loss:.9g}, {100 * right:.1f} % read right")
    manager.close()
    if first:
        print(f"stopped after step {step}; the state is in {args.checkpoints}")
        if begun >= args.steps:
            print("there was nothing left to do: remove the folder to start again, or raise --steps to go on")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Train a spatial transformer on several machines.")
    parser.add_argument("--coordinator", help="address and port of process 0, such as 10.0.0.1:1234")
    parser.add_argument("--processes", type=int, help="how many there are")
    parser.add_argument("--process", type=int, help="which of them this is, from 0 on")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--checkpoints", type=Path, default=Path("multi_host"), help="a folder that all can reach")
    parser.add_argument("--every", type=int, default=50, help="write a checkpoint after so many steps")
    argv = sys.argv[1:] if argv is None else argv
    args = parser.parse_args(argv)
    if (args.coordinator is None) != (args.process is None) or (args.coordinator and args.processes is None):
        parser.error("--coordinator and --process need each other, and --processes")
    if min(args.steps, args.every) < 1 or (args.processes or 1) < 1:
        parser.error("--processes, --steps and --every must be at least 1")

    with witness() as announce:
        announce(ALONE)
        started = join(args, argv)
        place = {"process": jax.process_index(), "count": jax.process_count(), "folder": args.checkpoints}
        announce(ENDED_EARLY.format(**place))
        if BATCH % jax.device_count():
            announce("")
            parser.error(f"{jax.device_count()} devices cannot share a batch of {BATCH} digits; take a power of two")
        train(args)
        jax.distributed.shutdown()
    return max((abs(process.wait()) for process in started), default=0)


if __name__ == "__main__":
    raise SystemExit(main())
