/** Values with their names, in a line. */
import type { ComponentChildren } from 'preact';

type Figure = readonly [name: string, value: ComponentChildren];

/** @param of false is left out */
export function Figures({ of }: { readonly of: readonly (Figure | false)[] }) {
  return (
    <dl class="figures">
      {of.map(
        (figure) =>
          figure && (
            <div key={figure[0]}>
              <dt>{figure[0]}</dt>
              <dd>{figure[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
