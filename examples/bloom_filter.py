"""A Bloom filter in a texture: a membership test takes k fetches, and has no false negatives.

A set of n keys is stored as m bits, 32 in each word of a 1D texture of unsigned integers, as in CUDA programs that
correct errors of DNA reads. A key sets the k bits that k hashes select. The test says that a key is a member if all of
its bits are set. For a key outside the set this happens with a probability near (1 - exp(-k n / m))^k.
"""

import argparse
import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxtex as jt


def mix(keys: jax.Array, salt: int) -> jax.Array:
    """A hash of 32 bits: the last step of MurmurHash3 (A. Appleby, public domain)."""
    keys = keys ^ jnp.uint32(salt)
    keys = (keys ^ (keys >> 16)) * jnp.uint32(0x85EBCA6B)
    keys = (keys ^ (keys >> 13)) * jnp.uint32(0xC2B2AE35)
    return keys ^ (keys >> 16)


def bits_of(keys: jax.Array, hashes: int, size: int) -> jax.Array:
    """The bits (..., k) below `size` that each key sets, by double hashing."""
    step = jnp.arange(hashes, dtype=jnp.uint32)
    first, second = mix(keys, 0x9E3779B9), mix(keys, 0x7F4A7C15) | jnp.uint32(1)
    return (first[..., None] + step * second[..., None]) % jnp.uint32(size)


@functools.partial(jax.jit, static_argnames=("hashes", "size"))
def build(keys: jax.Array, hashes: int, size: int) -> jt.Texture:
    """The filter of `keys`: a texture of size / 32 words."""
    bits = jnp.zeros(size, bool).at[bits_of(keys, hashes, size)].set(True).reshape(-1, 32)
    words = (bits.astype(jnp.uint32) << jnp.arange(32, dtype=jnp.uint32)).sum(axis=1, dtype=jnp.uint32)
    return jt.texture1d(words[:, None])


@functools.partial(jax.jit, static_argnames="hashes")
def contains(words: jt.Texture, keys: jax.Array, hashes: int) -> jax.Array:
    """Whether each key may be a member; False is certain."""
    bits = bits_of(keys, hashes, 32 * words.shape[0])
    word = jt.fetch(words, ((bits >> 5).astype(jnp.int32),))[..., 0]
    return ((word >> (bits & 31)) & 1).astype(bool).all(axis=-1)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build a Bloom filter, and count its errors.")
    parser.add_argument("--keys", type=int, default=100_000, help="the number of keys in the set, and of keys outside")
    parser.add_argument("--bits-per-key", type=int, default=10)
    parser.add_argument("--hashes", type=int, default=7)
    args = parser.parse_args(argv)

    drawn = np.random.default_rng(0).choice(2**32, 2 * args.keys, replace=False).astype(np.uint32)
    members, others = np.split(drawn, 2)
    size = -(-args.bits_per_key * args.keys // 32) * 32
    words = build(members, args.hashes, size)

    missed = int((~np.asarray(contains(words, members, args.hashes))).sum())
    measured = np.asarray(contains(words, others, args.hashes)).mean()
    theory = (1 - np.exp(-args.hashes * args.keys / size)) ** args.hashes
    print(f"{args.keys} keys in {words.shape[0]} words, {args.hashes} hashes")
    print(f"false negatives: {missed}")
    print(f"false positives: {measured:.4%}, in theory {theory:.4%}")
    return 0 if missed == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
