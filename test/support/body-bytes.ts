/** The bytes of an answer. Not `bytes()`: the server of the runner replaces `Response` in its process, and its own has none. */
export async function bodyBytes(response: Response): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await response.arrayBuffer());
}
