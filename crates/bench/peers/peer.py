"""The peers' arms: LangGraph with its SQLite checkpointer, and what deepagents says to a model about planning.

Reads one command a line, answers one JSON object a line:
  texts PATH           the texts that the commands below say: a JSON array, the same that our arm is given
  turn SECONDS         whole turns for so long; CPU of this process
  command SECONDS      a person's word, taken durably, one after the other
  wait COUNT PATH      makes so many conversations that wait for a person, and leaves them in a file
  waiting FEW MANY     opens two such files, as a process does that starts: bytes stored, memory, time to list them
  growth TURNS         one conversation of so many turns, each with a plan
  tokens               the text that planning adds to a prompt
"""

import json
import os
import resource
import sqlite3
import statistics
import sys
import tempfile
import time

TEXTS = []


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def nth(at):
    return TEXTS[at % len(TEXTS)]


def resident():
    with open("/proc/self/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def graph(path):
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph

    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    answer = {"text": ""}
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [AIMessage(answer["text"])]})
    builder.add_edge(START, "model")
    return builder.compile(checkpointer=SqliteSaver(connection)), connection, answer


def one(compiled, thread, text):
    compiled.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": thread}})


def turn(seconds, directory, state={}):
    if not state:
        state["graph"] = graph(os.path.join(directory, "turn.sqlite"))
        state["thread"] = 0
    compiled, _, answer = state["graph"]
    begun, used, turns = time.monotonic(), cpu(), 0
    while time.monotonic() - begun < seconds:
        if turns % 10 == 0:
            state["thread"] += 1
        answer["text"] = nth(turns + 1)
        one(compiled, f"thread-{state['thread']}", nth(turns))
        turns += 1
    return {"turns": turns, "cpu": cpu() - used}


def waiting_graph(path):
    """A graph that waits for a person's word, takes it, and waits again: what a decision is to a peer."""
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph
    from langgraph.types import interrupt

    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    builder = StateGraph(MessagesState)
    builder.add_node("wait", lambda state: {"messages": [("user", interrupt("what now?"))]})
    builder.add_edge(START, "wait")
    builder.add_edge("wait", "wait")
    return builder.compile(checkpointer=SqliteSaver(connection))


def command(seconds, directory, state={}):
    from langgraph.types import Command

    if not state:
        state["graph"] = waiting_graph(os.path.join(directory, "command.sqlite"))
        state["thread"] = 0
    compiled = state["graph"]
    begun, used, taken, config = time.monotonic(), 0.0, [], None
    while time.monotonic() - begun < seconds:
        if len(taken) % 10 == 0:
            state["thread"] += 1
            config = {"configurable": {"thread_id": f"thread-{state['thread']}"}}
            compiled.invoke({"messages": []}, config)
        at, before = time.monotonic(), cpu()
        compiled.invoke(Command(resume=nth(len(taken))), config)
        taken.append(time.monotonic() - at)
        used += cpu() - before
    return {"median": statistics.median(taken), "count": len(taken), "cpu": used}


def wait(count, path):
    compiled = waiting_graph(path)
    for at in range(count):
        compiled.invoke({"messages": []}, {"configurable": {"thread_id": f"thread-{at}"}})
    compiled.checkpointer.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return {"bytes": os.path.getsize(path)}


def listed(compiled):
    """How many conversations wait. There is no list of them: every state is looked at."""
    threads = {found.config["configurable"]["thread_id"] for found in compiled.checkpointer.list(None)}
    states = [compiled.get_state({"configurable": {"thread_id": thread}}) for thread in threads]
    return sum(1 for state in states if state.next)


def waiting(few, many):
    # What the library costs by itself is not counted.
    listed(waiting_graph(few))
    before = resident()
    compiled = waiting_graph(many)
    begun = time.monotonic()
    found = listed(compiled)
    seconds = time.monotonic() - begun
    return {"found": found, "bytes": os.path.getsize(many), "memory": resident() - before, "list": seconds}


def growth(turns, directory):
    path = os.path.join(directory, "growth.sqlite")
    compiled, connection, answer = graph(path)
    costs, raw = [], 0
    for at in range(turns):
        answer["text"] = nth(at)
        used = cpu()
        one(compiled, "thread", "plan it")
        one(compiled, "thread", "approve")
        costs.append(cpu() - used)
        raw += 2 * len(answer["text"]) + len("plan it") + len("approve")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    early, late = statistics.median(costs[20:30]), statistics.median(costs[-10:])
    return {"bytes": os.path.getsize(path), "raw": raw, "early": early, "late": late}


def tokens():
    from langchain.agents.middleware import todo

    return {"text": todo.WRITE_TODOS_SYSTEM_PROMPT + todo.WRITE_TODOS_TOOL_DESCRIPTION}


def main():
    with tempfile.TemporaryDirectory(prefix="planwright-peer-") as directory:
        for line in sys.stdin:
            words = line.split()
            match words:
                case ["turn", seconds]:
                    answer = turn(float(seconds), directory)
                case ["texts", path]:
                    with open(path) as file:
                        TEXTS[:] = json.load(file)
                    answer = {"texts": len(TEXTS)}
                case ["growth", turns]:
                    answer = growth(int(turns), directory)
                case ["command", seconds]:
                    answer = command(float(seconds), directory)
                case ["wait", count, path]:
                    answer = wait(int(count), path)
                case ["waiting", few, many]:
                    answer = waiting(few, many)
                case ["tokens"]:
                    answer = tokens()
                case _:
                    answer = {"error": f"unknown command {line!r}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
