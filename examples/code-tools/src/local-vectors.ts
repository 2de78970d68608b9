/** A stand-in for Vectorize on a developer's machine: the same `query`, over the products of the D1 database. */
import { WorkerEntrypoint } from 'cloudflare:workers';
import { embed } from '../tools/lib/embed.ts';

interface Product {
  readonly id: string;
  readonly name: string;
  readonly description: string;
}

/** Products that are compared; an index has no such limit. */
const MOST_PRODUCTS = 1_000;

export class LocalVectors extends WorkerEntrypoint<{ readonly SHOP: D1Database }> {
  async query(
    vector: number[],
    { topK = 5 }: { readonly topK?: number } = {},
  ): Promise<{ matches: { id: string; score: number; metadata: { name: string } }[] }> {
    const { results } = await this.env.SHOP.prepare('SELECT id, name, description FROM products LIMIT ?')
      .bind(MOST_PRODUCTS)
      .all<Product>();
    const matches = results.map(({ id, name, description }) => {
      const score = embed(`${name} ${description}`).reduce((sum, value, at) => sum + value * (vector[at] ?? 0), 0);
      return { id, score, metadata: { name } };
    });
    return { matches: matches.toSorted((a, b) => b.score - a.score).slice(0, topK) };
  }
}
