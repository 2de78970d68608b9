/** Keeps secrets out of what leaves the system as text (X3). */
import { limits } from '../domain/limits.ts';

const MARK = '[secret]';

/** @param secrets values of the environment; each is found as it is and as JSON would write it */
export function redactor(secrets: readonly string[]): (text: string) => string {
  const forms = secrets.flatMap((secret) =>
    secret.length < limits.secretChars ? [] : [secret, JSON.stringify(secret).slice(1, -1)],
  );
  // Longest first: a secret may hold another one.
  const found = [...new Set(forms)].toSorted((a, b) => b.length - a.length);
  return (text) => found.reduce((safe, secret) => safe.replaceAll(secret, MARK), text);
}
