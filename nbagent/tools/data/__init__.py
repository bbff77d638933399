"""What an analyst's eyes need: describers of values, profiles of tables, beginnings of data files, queries, figures."""
