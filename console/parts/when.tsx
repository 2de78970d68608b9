/** A time as people say it, with the exact one. */
import { relative, time } from './format.ts';

/** @param props.at epoch milliseconds; anything else is not a time */
export function When({ at, isExact = false }: { readonly at: unknown; readonly isExact?: boolean }) {
  const date = new Date(typeof at === 'number' ? at : NaN);
  const ms = date.getTime();
  if (Number.isNaN(ms)) return <>—</>;
  return (
    <time dateTime={date.toISOString()} title={time(ms)}>
      {isExact && `${time(ms)}, `}
      {relative(ms, Date.now())}
    </time>
  );
}
