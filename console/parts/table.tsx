/** A table that shows its first rows, and scrolls sideways where the page is too narrow. */
import type { ComponentChildren } from 'preact';
import { Bounded } from './bounded.tsx';

export function Table<T>({
  label,
  rows,
  columns,
}: {
  /** Accessible name. */
  readonly label: string;
  readonly rows: readonly T[];
  /** The first one names the row. */
  readonly columns: readonly (readonly [title: string, cell: (row: T) => ComponentChildren])[];
}) {
  if (rows.length === 0) return <p class="quiet">None.</p>;
  return (
    <Bounded items={rows}>
      {(shown) => (
        <div class="table-scroll" tabIndex={0} role="region" aria-label={label}>
          <table>
            <thead>
              <tr>
                {columns.map(([title]) => (
                  <th key={title} scope="col">
                    {title}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.map((row, at) => (
                <tr key={at}>
                  {columns.map(([title, cell], column) =>
                    column === 0 ? (
                      <th key={title} scope="row">
                        {cell(row)}
                      </th>
                    ) : (
                      <td key={title}>{cell(row)}</td>
                    ),
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Bounded>
  );
}
