/** An image whose bytes the page has. */
import { useEffect, useState } from 'preact/hooks';

export function BlobImage({ blob, alt }: { readonly blob: Blob; readonly alt: string }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blob);
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [blob]);
  return <img src={url} alt={alt} />;
}
