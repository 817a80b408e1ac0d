"""The peers' arms: LangGraph with its SQLite checkpointer, and what deepagents says to a model about planning.

Reads one command a line, answers one JSON object a line:
  turn SECONDS         whole turns for so long; CPU of this process
  command SECONDS BYTES  a person's word of so many bytes, taken durably, one after the other
  waiting COUNT        so many conversations that wait for a person: bytes stored, memory, time to list them
  growth TURNS BYTES   one conversation of so many turns, each with a plan of so many bytes
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


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def graph(path):
    from langchain_core.messages import AIMessage
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import START, MessagesState, StateGraph

    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    answer = {"text": "I have written what there is to say."}
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
    compiled = state["graph"][0]
    begun, used, turns = time.monotonic(), cpu(), 0
    while time.monotonic() - begun < seconds:
        if turns % 10 == 0:
            state["thread"] += 1
        one(compiled, f"thread-{state['thread']}", "just talk")
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


def command(seconds, size, directory, state={}):
    from langgraph.types import Command

    if not state:
        state["graph"] = waiting_graph(os.path.join(directory, "command.sqlite"))
        state["thread"] = 0
    compiled, text = state["graph"], "x" * size
    begun, used, taken, config = time.monotonic(), 0.0, [], None
    while time.monotonic() - begun < seconds:
        if len(taken) % 10 == 0:
            state["thread"] += 1
            config = {"configurable": {"thread_id": f"thread-{state['thread']}"}}
            compiled.invoke({"messages": []}, config)
        at, before = time.monotonic(), cpu()
        compiled.invoke(Command(resume=text), config)
        taken.append(time.monotonic() - at)
        used += cpu() - before
    return {"median": statistics.median(taken), "count": len(taken), "cpu": used}


def waiting(count, directory):
    path = os.path.join(directory, "waiting.sqlite")
    compiled = waiting_graph(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for at in range(count):
        compiled.invoke({"messages": []}, {"configurable": {"thread_id": f"thread-{at}"}})
    begun = time.monotonic()
    threads = {found.config["configurable"]["thread_id"] for found in compiled.checkpointer.list(None)}
    states = [compiled.get_state({"configurable": {"thread_id": thread}}) for thread in threads]
    found = sum(1 for state in states if state.next)
    listed = time.monotonic() - begun
    compiled.checkpointer.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    return {"found": found, "bytes": os.path.getsize(path), "memory": memory, "list": listed}


def growth(turns, size, directory):
    path = os.path.join(directory, "growth.sqlite")
    compiled, connection, answer = graph(path)
    costs, raw = [], 0
    for at in range(turns):
        answer["text"] = (f"plan {at} " * size)[:size]
        used = cpu()
        one(compiled, "thread", "plan it")
        one(compiled, "thread", "approve")
        costs.append(cpu() - used)
        raw += 2 * size + 14
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
                case ["growth", turns, size]:
                    answer = growth(int(turns), int(size), directory)
                case ["command", seconds, size]:
                    answer = command(float(seconds), int(size), directory)
                case ["waiting", count]:
                    answer = waiting(int(count), directory)
                case ["tokens"]:
                    answer = tokens()
                case _:
                    answer = {"error": f"unknown command {line!r}"}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
