"""YuniKorn: applications, gangs held by placeholders, hierarchical queues."""
