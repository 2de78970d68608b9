/** The way from an earlier run or another branch to the newest one. */
import { fromHere, href, route } from '../app/router.ts';

/** @returns shows the newest run, if the reader has not left and something else is shown */
export function toNewest(id: string): () => void {
  const goOn = fromHere();
  return () => {
    const { path, query } = route.peek();
    if (path.length > 2 || query['branch'] !== undefined) goOn(href(['sessions', id]));
  };
}
