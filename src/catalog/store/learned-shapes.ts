/**
 * The shapes of results that runs of a namespace have learned (L4), by `type/name`.
 *
 * A shape belongs to one revision of its manifest: it is forgotten when the manifest changes. At most
 * `limits.learnedShapes` are kept.
 */
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { SqlDatabase } from '../../domain/ports/storage.ts';
import { combined } from '../../domain/learned-shape.ts';
import type { LearnedShapes, Shape } from '../../domain/shape.ts';
import type { RevisionOf } from './store.ts';

export class ShapeTable {
  readonly #sql: SqlDatabase;

  constructor(sql: SqlDatabase) {
    this.#sql = sql;
    // Its shapes have keys that only one run has seen.
    sql.exec(`DROP TABLE IF EXISTS learned_shapes`);
    sql.exec(
      `CREATE TABLE IF NOT EXISTS result_shapes (target TEXT PRIMARY KEY, revision INTEGER NOT NULL, shape TEXT NOT NULL)
       WITHOUT ROWID`,
    );
  }

  /** The shapes of these targets, as JSON; null if there are none. */
  read(targets: readonly string[]): string | null {
    if (targets.length === 0) return null;
    const rows = this.#sql.exec(
      `SELECT json_group_object(target, json(shape)) AS shapes, COUNT(*) AS count FROM
         (SELECT target, shape FROM result_shapes WHERE target IN (SELECT value FROM json_each(?)) ORDER BY target)`,
      JSON.stringify(targets),
    );
    return Number(rows[0]?.['count'] ?? 0) === 0 ? null : String(rows[0]?.['shapes']);
  }

  /** Stores shapes of manifests that exist. */
  learn(shapes: LearnedShapes, manifests: readonly RevisionOf[]): void {
    const revisions = revisionsOf(manifests);
    this.#sql.transaction(() => {
      for (const [target, shape] of Object.entries(shapes)) {
        const revision = revisions.get(manifestOf(target));
        const text = JSON.stringify(this.#with(target, revision, shape));
        if (revision === undefined || text.length > limits.storedShapeChars) continue;
        this.#sql.exec(
          `INSERT INTO result_shapes (target, revision, shape)
           SELECT ?1, ?2, ?3 WHERE (SELECT COUNT(*) FROM result_shapes WHERE target <> ?1) < ?4
           ON CONFLICT (target) DO UPDATE SET revision = excluded.revision, shape = excluded.shape
           WHERE revision <> excluded.revision OR shape <> excluded.shape`,
          target,
          revision,
          text,
          limits.learnedShapes,
        );
      }
    });
  }

  /** Runs at the same time do not know of each other, so none replaces what another one has stored. */
  #with(target: string, revision: number | undefined, shape: Shape): Shape {
    const [row] = this.#sql.exec(`SELECT revision, shape FROM result_shapes WHERE target = ?`, target);
    if (row === undefined || Number(row['revision']) !== revision) return shape;
    return combined(JSON.parse(String(row['shape'])) as Shape, shape);
  }

  /** After a change of manifests: forgets the shapes of manifests that were changed or removed. */
  follow(manifests: readonly RevisionOf[]): void {
    const revisions = revisionsOf(manifests);
    for (const row of this.#sql.exec(`SELECT target, revision FROM result_shapes`)) {
      const target = String(row['target']);
      if (revisions.get(manifestOf(target)) === Number(row['revision'])) continue;
      this.#sql.exec(`DELETE FROM result_shapes WHERE target = ?`, target);
    }
  }
}

/** Bundled manifests have the revision 0. */
function revisionsOf(manifests: readonly RevisionOf[]): ReadonlyMap<string, number> {
  return new Map(manifests.map(({ kind, name, revision }) => [`${kind}/${name}`, revision ?? 0]));
}

/** `relic/notes.get` belongs to `relic/notes`. */
function manifestOf(target: string): string {
  return target.startsWith('relic/') ? target.split('.', 1).join('') : target;
}

/** The result of `read`. */
export function shapesIn(text: string | null): { readonly shapes?: LearnedShapes } {
  return text === null ? {} : { shapes: JSON.parse(text) as JsonObject as unknown as LearnedShapes };
}
