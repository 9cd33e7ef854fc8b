"""An async tool that asks a web service.

It needs httpx, which requirements.txt names, and the secret WEATHER_API_KEY, which tooldock.yaml declares.
"""

import os

import httpx
from fastmcp.tools import tool


@tool
async def get_weather(city: str, units: str = "metric") -> dict:
    """Get current weather for a city.

    Args:
        city: City name (e.g. "Berlin", "New York").
        units: Temperature units: "metric" (Celsius) or "imperial" (Fahrenheit).

    Returns:
        Dict with temperature, description, humidity.
    """
    api_key = os.environ["WEATHER_API_KEY"]
    base_url = os.environ.get("WEATHER_BASE_URL", "https://api.openweathermap.org")
    async with httpx.AsyncClient(base_url=base_url, timeout=20) as client:
        response = await client.get(
            "/data/2.5/weather",
            params={"q": city, "units": units, "appid": api_key},
        )
        response.raise_for_status()
        data = response.json()
    return {
        "city": data["name"],
        "temperature": data["main"]["temp"],
        "description": data["weather"][0]["description"],
        "humidity": data["main"]["humidity"],
    }
