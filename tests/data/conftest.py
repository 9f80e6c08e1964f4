import pytest


@pytest.fixture(scope="session")
def spark(require_system):
    """A Spark session on this machine, two workers."""
    sql = pytest.importorskip("pyspark.sql", reason="pyspark is not installed: pip install 'dpbn[spark]'")
    require_system("java")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        # many tiny queries: compiling them costs more than it saves
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.adaptive.enabled": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
    }
    builder = sql.SparkSession.builder.master("local[2]").appName("dpbn tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
