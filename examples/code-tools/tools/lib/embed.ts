/**
 * A stand-in for a model of embeddings: counts words in 64 buckets. Texts with the same words are similar; it knows no
 * synonyms. With the binding AI, call `env.AI.run('@cf/baai/bge-small-en-v1.5', {text})` instead.
 *
 * @returns a vector of 64 numbers with length 1
 */
export function embed(text: string): number[] {
  const vector = Array.from({ length: 64 }, () => 0);
  for (const word of text.toLowerCase().match(/[a-z0-9]+/g) ?? []) {
    let hash = 0;
    for (const character of word) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) >>> 0;
    vector[hash % vector.length] = (vector[hash % vector.length] ?? 0) + 1;
  }
  const length = Math.hypot(...vector) || 1;
  return vector.map((value) => value / length);
}
