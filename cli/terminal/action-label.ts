/** An action as people read it: its id, and its name in parentheses if it has another one. */
export function actionLabel(id: string, name: string | undefined): string {
  return name === undefined || name === id ? id : `${id} (${name})`;
}
