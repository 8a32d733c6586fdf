"""``python tests/fuzz --inputs 10000``: wrong files for every loader, and a table of how it went.

Each input is read in a process of its own kind: with little memory, restarted when it dies or does
not answer, so that a crash or a hang is found and counted.
"""

import argparse
import multiprocessing
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

LIMIT_SECONDS = 5.0  # of the processor, and six times as many of the clock
MEMORY_BYTES = 2 << 30  # beyond what the process has when it starts
SEED = int(os.environ.get("FUZZ_SEED", "0"))
HEAD = (
    f"{'loader':<16}{'inputs':>8}{'accepted':>10}{'refused':>9}{'slowest, s':>12}{'failures':>10}"
)


def source(loader, number):
    """Input k of a loader is always the same, but for another SEED."""
    return random.Random(f"{loader.name} {number}" + (f" {SEED}" if SEED else ""))


def make_input(examples, rng):
    """Files by name: an example with a fault in one or two of its files, or without one of them."""
    from mutations import mutated

    files = dict(rng.choice(examples))
    for name in rng.sample(sorted(files), min(len(files), rng.choice((1, 1, 1, 2)))):
        if len(files) > 1 and rng.random() < 0.03:
            del files[name]
        else:
            files[name] = mutated(files[name], rng, name)
    return files


def write_input(files, folder):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def work(loader, examples, numbers, home, pipe):
    """In the child: reads one input after the other and tells of each."""
    from judge import judge

    with open("/proc/self/statm") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_BYTES, used + MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in numbers:
        rng = source(loader, number)
        files = make_input(examples, rng)
        with tempfile.TemporaryDirectory(dir=home, prefix="input-") as room:
            write_input(files, Path(room))
            pipe.send((number, None))
            pipe.send((number, judge(loader.load, Path(room), rng, home)))
    pipe.send((None, None))


def answers(pipe, child):
    """Whether the child says something in time."""
    begun, clock = processor_seconds(child), time.perf_counter()
    while not pipe.poll(LIMIT_SECONDS / 10):
        if processor_seconds(child) - begun > LIMIT_SECONDS:
            return False
        if time.perf_counter() - clock > 6 * LIMIT_SECONDS:
            return False
    return True


def processor_seconds(process):
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fuzz(loader, inputs, home, keep):
    """The line of the table, and the faults with how often each came."""
    from judge import Verdict

    examples = loader.examples(home)
    faults, first, verdicts = Counter(), {}, []
    number, started, verdict = 0, time.perf_counter(), None
    while number < inputs:
        ours, theirs = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("fork").Process(
            target=work, args=(loader, examples, range(number, inputs), home, theirs), daemon=True
        )
        child.start()
        theirs.close()
        while number < inputs:
            fault = ""
            try:
                if answers(ours, child.pid):
                    _, verdict = ours.recv()
                else:
                    fault = f"it hangs: no answer within {LIMIT_SECONDS:g} s"
            except EOFError:
                child.join()
                fault = f"the process died with exit code {child.exitcode}"
            if fault:
                fault = f"{fault} ({'while it was read' if verdict is None else 'between inputs'})"
                verdict = Verdict(False, fault, seconds=LIMIT_SECONDS)
            elif verdict is None:
                continue
            verdicts.append(verdict)
            if verdict.fault:
                verdict = replace(verdict, fault=re.sub(r"input-\w+", "INPUT", verdict.fault))
                faults[verdict.fault] += 1
                first.setdefault(verdict.fault, number)
            number += 1
            if fault:
                break
        child.kill()
        child.join()
        ours.close()
    for fault, at in first.items():
        folder = keep / f"{loader.name.replace(' ', '-')}-{at}"
        shutil.rmtree(folder, ignore_errors=True)
        write_input(make_input(examples, source(loader, at)), folder)
        (folder / "fault.txt").write_text(fault + "\n")
    accepted = sum(v.accepted and not v.fault for v in verdicts)
    refused = sum(not v.accepted and not v.fault for v in verdicts)
    slowest = max(v.seconds for v in verdicts)
    at = [v.seconds for v in verdicts].index(slowest)
    line = f"{loader.name:<16}{inputs:>8}{accepted:>10}{refused:>9}{slowest:>12.2f}"
    line += f"{sum(faults.values()):>10}{time.perf_counter() - started:>10.0f}"
    line += f"   slowest: input {at}"
    said = Counter(re.sub(r"\S*input-\w+/|\d+", "~", v.words) for v in verdicts if v.words)
    return line, [(fault, n, first[fault]) for fault, n in faults.most_common()], said


def main():
    asked = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    asked.add_argument("--inputs", type=int, default=10_000, help="of each loader")
    asked.add_argument("--only", nargs="*", help="names of loaders")
    asked.add_argument("--keep", type=Path, default=Path("fuzz-failures"), help="for bad inputs")
    asked.add_argument(
        "--words", type=int, default=0, help="so many sentences of refusals, to read"
    )
    asked.add_argument("--show", type=int, help="one input alone, with its traceback")
    given = asked.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"  # and a fork of one thread is whole
    import torch

    torch.set_num_threads(1)
    from loaders import LOADERS, make_runs

    chosen = [loader for loader in LOADERS if not given.only or loader.name in given.only]
    failed = 0
    room = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=room, prefix="fuzz-") as name:
        home = Path(name)
        make_runs(home)
        if given.show is not None:
            return show(chosen[0], given.show, home)
        print(f"{HEAD}{'seconds':>10}", flush=True)
        for loader in chosen:
            line, faults, said = fuzz(loader, given.inputs, home, given.keep)
            print(line, flush=True)
            for words, count in said.most_common(given.words):
                print(f"    {count} x said: {words}", flush=True)
            for fault, count, at in faults:
                print(f"    {count} x (input {at}) {fault}", flush=True)
            failed += len(faults)
    return 1 if failed else 0


def show(loader, number, home):
    rng = source(loader, number)
    files = make_input(loader.examples(home), rng)
    room = home / "shown"
    write_input(files, room)
    loader.load(room, rng, home)
    return 0


if __name__ == "__main__":
    sys.exit(main())
