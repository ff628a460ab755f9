mod conservation;
