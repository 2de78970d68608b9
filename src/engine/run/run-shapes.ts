/**
 * Shapes of a run's results, for the prompts of later runs (L4): of targets whose manifest does not say what they return.
 *
 * Owns what this run has learned. Does not own the shapes of the namespace, which are a part of its definitions.
 */
import type { ActionDeclaration } from '../../domain/action.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifest.ts';
import { learn, shapeOfValue } from '../../domain/shape.ts';
import type { LearnedShapes, Shape } from '../../domain/shape.ts';
import { undescribedTargets } from '../../domain/undescribed-targets.ts';
import { relicTarget } from '../../executors/relic.ts';

export class RunShapes {
  readonly #earlier: LearnedShapes;
  readonly #targets: ReadonlySet<string>;
  readonly #learned = new Map<string, Shape>();

  constructor(resolved: ResolvedAgent) {
    this.#earlier = resolved.shapes ?? {};
    this.#targets = new Set(undescribedTargets(resolved));
  }

  /** An action has succeeded. */
  note(action: Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>, output: Json): void {
    const target = targetOf(action);
    if (!this.#targets.has(target)) return;
    if (!this.#learned.has(target) && this.#learned.size >= limits.learnedShapesPerRun) return;
    const earlier =
      this.#learned.get(target) ?? (Object.hasOwn(this.#earlier, target) ? this.#earlier[target] : undefined);
    this.#learned.set(target, learn(earlier, shapeOfValue(output)));
  }

  /** The shapes that differ from the known ones; each is returned once. */
  take(): LearnedShapes {
    const changed = [...this.#learned].filter(
      ([target, shape]) => JSON.stringify(shape) !== JSON.stringify(this.#earlier[target]),
    );
    this.#learned.clear();
    return Object.fromEntries(changed);
  }
}

function targetOf(action: Pick<ActionDeclaration, 'type' | 'name' | 'parameters'>): string {
  if (action.type !== 'relic') return `${action.type}/${action.name}`;
  const { relic, endpoint } = relicTarget(action);
  return `relic/${relic}.${endpoint ?? ''}`;
}
