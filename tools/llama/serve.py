"""A real model server (llama.cpp) with a tiny model: random weights over a vocabulary of bytes.

It answers nonsense, as it must; everything around the words is real: tokens, streaming, usage, limits.
Prints its address, and serves until it is killed.
"""

import sys
import time

import gguf
import numpy as np
import xllamacpp

WIDTH, HIDDEN, LAYERS, HEADS = 64, 128, 2, 4


def write_model(path: str) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    tokens = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    tokens += ["▁" + word for word in "the a plan file is not yes no and then done".split()]
    special = gguf.TokenType
    kinds = [special.UNKNOWN, special.CONTROL, special.CONTROL] + [special.BYTE] * 256
    kinds += [special.NORMAL] * (len(tokens) - len(kinds))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types([int(kind) for kind in kinds])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_context_length(32768)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_vocab_size(len(tokens))
    writer.add_file_type(0)
    random = np.random.default_rng(1)

    def tensor(name: str, *shape: int, scale: float = 0.05) -> None:
        writer.add_tensor(name, (random.standard_normal(shape) * scale).astype(np.float32))

    def ones(name: str) -> None:
        writer.add_tensor(name, np.ones(WIDTH, dtype=np.float32))

    tensor("token_embd.weight", len(tokens), WIDTH, scale=1.0)
    tensor("output.weight", len(tokens), WIDTH, scale=0.3)
    ones("output_norm.weight")
    for layer in range(LAYERS):
        block = f"blk.{layer}."
        ones(block + "attn_norm.weight")
        ones(block + "ffn_norm.weight")
        for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
            tensor(block + name + ".weight", WIDTH, WIDTH)
        tensor(block + "ffn_gate.weight", HIDDEN, WIDTH)
        tensor(block + "ffn_up.weight", HIDDEN, WIDTH)
        tensor(block + "ffn_down.weight", WIDTH, HIDDEN)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main() -> None:
    path = sys.argv[1]
    write_model(path)
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = 32768
    params.n_parallel = 1
    params.n_predict = 64
    server = xllamacpp.Server(params)
    # In brackets: what the server logs may stand right beside it.
    print(f"\n<{server.listening_address}>", flush=True)
    time.sleep(3600)


main()
