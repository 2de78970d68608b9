/**
 * Shapes of a run's results, for the prompts of later runs (L4): of targets whose manifest does not say what they return.
 *
 * Owns what this run has observed. Keys are confirmed by other runs only: what was known is what the run started with, so
 * several results of a run, or its recovery, confirm nothing. Does not own the shapes of the namespace, which are a part of its definitions.
 */
import type { ActionDeclaration } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import { combined, learned, seenOnce } from '../../domain/learned-shape.ts';
import { shapeOfValue } from '../../domain/shape.ts';
import type { LearnedShapes, Shape } from '../../domain/shape.ts';
import { undescribedTargets } from '../../domain/undescribed-targets.ts';
import { relicTarget } from '../../executors/relic.ts';

export class RunShapes {
  readonly #earlier: LearnedShapes;
  readonly #targets: ReadonlySet<string>;
  readonly #relics: ResolvedAgent['relics'];
  readonly #observed = new Map<string, Shape>();
  /** The shape of the last result of each target, as JSON: most results of a target have the same. */
  readonly #last = new Map<string, string>();
  readonly #taken = new Map<string, string>();

  constructor(resolved: ResolvedAgent) {
    this.#earlier = resolved.shapes ?? {};
    this.#targets = new Set(undescribedTargets(resolved));
    this.#relics = resolved.relics;
  }

  /** An action has succeeded. */
  note(action: Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>, output: Json): void {
    const target = this.#targetOf(action);
    if (!this.#targets.has(target)) return;
    const observed = this.#observed.get(target);
    if (observed === undefined && this.#observed.size >= limits.learnedShapesPerRun) return;
    const last = shapeOfValue(output);
    const text = JSON.stringify(last);
    if (this.#last.get(target) === text) return;
    this.#last.set(target, text);
    const shape = seenOnce(last);
    this.#observed.set(target, observed === undefined ? shape : combined(observed, shape));
  }

  /** The shapes that differ from the known ones; each is returned once. */
  take(): LearnedShapes {
    const changed: [string, Shape][] = [];
    for (const [target, observed] of this.#observed) {
      const earlier = Object.hasOwn(this.#earlier, target) ? this.#earlier[target] : undefined;
      const shape = learned(earlier, observed);
      const text = JSON.stringify(shape);
      const known = this.#taken.get(target) ?? JSON.stringify(earlier);
      if (text === known || text.length > limits.storedShapeChars) continue;
      this.#taken.set(target, text);
      changed.push([target, shape]);
    }
    return Object.fromEntries(changed);
  }

  #targetOf(action: Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>): string {
    if (action.type !== 'relic') return `${action.type}/${action.name}`;
    const { relic, endpoint } = relicTarget(action, this.#relics);
    return `relic/${relic}.${endpoint ?? ''}`;
  }
}
