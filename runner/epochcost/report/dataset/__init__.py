"""All figures of the site as one table: its lines and columns, its files, its dictionary."""
