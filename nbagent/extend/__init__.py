"""What comes from the project's and the person's own files: sessions, and later hooks, skills, MCP servers, memory."""
