"""The notebook without a browser: cells in memory, and a page that nbclient plays."""
