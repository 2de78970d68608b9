CREATE TABLE orders (id INTEGER PRIMARY KEY, customer TEXT NOT NULL, status TEXT NOT NULL, total REAL NOT NULL);
CREATE INDEX orders_by_customer ON orders (customer, id);
INSERT INTO orders VALUES (1, 'ada', 'shipped', 20.5), (2, 'ada', 'open', 9), (3, 'ben', 'open', 70);
CREATE TABLE products (id TEXT PRIMARY KEY, name TEXT NOT NULL, description TEXT NOT NULL);
INSERT INTO products VALUES
  ('p1', 'Rain jacket', 'waterproof jacket for wet days'),
  ('p2', 'Sun hat', 'light hat against sun'),
  ('p3', 'Umbrella', 'keeps you dry on wet days');
